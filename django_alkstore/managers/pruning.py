"""Deleting what has been kept long enough, in batches that hold no lock for long."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from django_alkstore.managers import moves

BATCH = 500


def delete_in_batches(alias: str, rows: QuerySet[Any], limit: int | None) -> int:
    """
    Delete the job rows of a query on ``alias``, with their attempts; return how many.

    At most ``limit``. Each batch is a transaction of its own outside one of the
    caller's, so that what was done stays done when a later one fails.
    """
    total = 0
    while limit is None or total < limit:
        size = BATCH if limit is None else min(BATCH, limit - total)
        # Read outside the transaction, which then begins with its first write.
        ids = list(rows.values_list("pk", flat=True)[:size])
        if not ids:
            break
        with transaction.atomic(using=alias):
            rows.order_by().filter(pk__in=ids).delete()
            moves.forget_attempts(alias, ids)
        total += len(ids)
        if len(ids) < size:
            break
    return total
