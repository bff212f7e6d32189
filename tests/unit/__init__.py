"""What needs no database."""
