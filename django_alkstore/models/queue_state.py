"""``__alkstore_queues``: the queues that an operator has paused."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from django_alkstore import options
from django_alkstore.fields import InstantField
from django_alkstore.managers.queue_state import QueueStateManager


class QueueState(models.Model):
    """A queue's switch: nothing is handed out while ``paused_at`` is set."""

    name = models.CharField(
        _("queue"), max_length=options.MAX_QUEUE_LENGTH, primary_key=True
    )
    paused_at = InstantField(_("paused at"), null=True, blank=True)

    objects: ClassVar[QueueStateManager] = QueueStateManager()

    class Meta:
        db_table = "__alkstore_queues"
        verbose_name = _("queue")
        verbose_name_plural = _("queues")

    def __str__(self) -> str:
        return self.name
