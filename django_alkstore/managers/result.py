"""The results of finished jobs. They are stored by the ack; here they end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django_alkstore.managers.base import SqlManager
from django_alkstore.managers.pruning import delete_in_batches

if TYPE_CHECKING:
    from django_alkstore.models import Result


class ResultManager(SqlManager["Result"]):
    """``Result.objects``."""

    def sweep(self, limit: int | None = None) -> int:
        """Delete results past their lifetime, in batches. Return how many."""
        over = self.using(self.database).filter(keep_until__lte=self.now())
        return delete_in_batches(self.database, over.order_by("keep_until"), limit)
