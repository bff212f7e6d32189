"""What worker processes tell of themselves."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.models import QuerySet

from django_alkstore import clock
from django_alkstore.conf import get_settings
from django_alkstore.managers.base import SqlManager

if TYPE_CHECKING:
    from django_alkstore.models import Worker

# For how long an operator still sees that a worker has gone without a word.
GONE_FOR = timedelta(days=1)


class WorkerManager(SqlManager["Worker"]):
    """``Worker.objects``."""

    def beat(self, worker_id: str, **columns: Any) -> None:
        """
        Write a worker's row, new or renewed; ``seen_at`` is now.

        ``columns``: host, pid, queues, threads, running, stopping.
        """
        now = clock.to_instant(self.now())
        known = self.using(self.database).filter(worker_id=worker_id)
        # Not update_or_create: its transaction begins with a read, and on SQLite one
        # that does may fail to write after another process has written.
        with transaction.atomic(using=self.database):
            if not known.update(seen_at=now, **columns):
                self.using(self.database).create(
                    worker_id=worker_id, started_at=now, seen_at=now, **columns
                )

    def remove(self, worker_id: str) -> None:
        """Delete the row of a worker that ends."""
        with transaction.atomic(using=self.database):
            self.using(self.database).filter(worker_id=worker_id).delete()

    def alive(self) -> QuerySet[Worker]:
        """Return the workers that were seen within ``WORKER_TTL``."""
        ttl = clock.duration(get_settings().worker_ttl, "WORKER_TTL")
        return self.using(self.database).filter(seen_at__gt=self.now() - ttl)

    def sweep(self) -> int:
        """Delete the rows of workers that have been gone for a day."""
        oldest = self.now() - clock.duration(GONE_FOR, "GONE_FOR")
        with transaction.atomic(using=self.database):
            return self.using(self.database).filter(seen_at__lte=oldest).delete()[0]
