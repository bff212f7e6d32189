"""
What can be done with the rows.

The SQL they run stands in ``django_alkstore.sql``.
"""
