"""
``__alkstore_attempts``: what became of a job's attempts, apart from the job's row.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from django_alkstore.fields import InstantField
from django_alkstore.managers.attempt import AttemptManager


class Attempt(models.Model):
    """
    One attempt that failed, or that left progress or log lines.

    The last 20 of a job are kept, for as long as its live, dead or result row is there.
    ``ended_at`` is None while it runs; an attempt whose worker died ends when its
    lapsed claim is found. No foreign key: a job's row moves between tables.
    """

    job_id = models.BigIntegerField(_("job"))
    attempt = models.IntegerField(_("attempt"))
    worker_id = models.CharField(_("worker"), max_length=200)
    started_at = InstantField(_("started at"), null=True)
    ended_at = InstantField(_("ended at"), null=True)
    exception_class = models.CharField(_("exception"), max_length=255, db_default="")
    message = models.TextField(_("message"), db_default="")
    traceback = models.TextField(_("traceback"), db_default="")
    progress = models.TextField(_("progress"), null=True)
    log = models.TextField(_("log"), db_default="")

    objects: ClassVar[AttemptManager] = AttemptManager()

    class Meta:
        db_table = "__alkstore_attempts"
        verbose_name = _("attempt")
        verbose_name_plural = _("attempts")
        constraints = [
            models.UniqueConstraint(
                fields=["job_id", "attempt"], name="alkstore_attempts_job"
            ),
        ]

    def __str__(self) -> str:
        return f"#{self.job_id}, {self.attempt}"
