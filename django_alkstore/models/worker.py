"""``__alkstore_workers``: which worker processes are alive, and what they are doing."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from django_alkstore.fields import InstantField
from django_alkstore.managers.worker import WorkerManager


class Worker(models.Model):
    """
    One worker process, as it last told of itself.

    For people to look at, and never to decide by: a job is free again when its own
    claim lapses, whatever stands here.
    """

    worker_id = models.CharField(_("worker"), max_length=200, primary_key=True)
    host = models.CharField(_("host"), max_length=255)
    pid = models.IntegerField(_("process"))
    started_at = InstantField(_("started at"))
    seen_at = InstantField(_("last seen at"))
    queues = models.TextField(_("queues"), blank=True)
    threads = models.IntegerField(_("threads"))
    running = models.TextField(_("running"), default="[]")
    stopping = models.BooleanField(_("stopping"), default=False)

    objects: ClassVar[WorkerManager] = WorkerManager()

    class Meta:
        db_table = "__alkstore_workers"
        verbose_name = _("worker")
        verbose_name_plural = _("workers")
        indexes = [models.Index(fields=["seen_at"], name="alkstore_workers_seen")]

    def __str__(self) -> str:
        return self.worker_id
