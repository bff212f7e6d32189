"""The switches of the queues."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction

from django_alkstore import clock
from django_alkstore.managers.base import SqlManager

if TYPE_CHECKING:
    from django_alkstore.models import QueueState


class QueueStateManager(SqlManager["QueueState"]):
    """``QueueState.objects``."""

    def pause(self, name: str) -> bool:
        """Hand nothing out from a queue from now on. True when it was not paused."""
        now = clock.to_instant(self.now())
        states = self.using(self.database)
        running = states.filter(name=name, paused_at__isnull=True)
        with transaction.atomic(using=self.database):
            if running.update(paused_at=now):
                return True
            return states.get_or_create(name=name, defaults={"paused_at": now})[1]

    def resume(self, name: str) -> bool:
        """Hand out jobs again. True when it was paused."""
        paused = self.using(self.database).filter(name=name, paused_at__isnull=False)
        with transaction.atomic(using=self.database):
            return bool(paused.update(paused_at=None))

    def is_paused(self, name: str) -> bool:
        """Tell whether a queue is paused."""
        paused = self.using(self.database).filter(name=name, paused_at__isnull=False)
        return paused.exists()
