"""``__alkstore_dead``: the jobs that will not run again by themselves."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from django_alkstore.fields import InstantField
from django_alkstore.managers.dead_job import DeadJobManager
from django_alkstore.models.job import JobRow
from django_alkstore.sql.expressions import NowMicroseconds


class DeadJob(JobRow):
    """
    A dead letter, with why it died. It keeps the id that it had in the live table.

    ``keep_until`` is its own retention's end; where it is None, the ``RETENTION``
    setting counts from ``died_at``.
    """

    class Reason(models.TextChoices):
        EXHAUSTED = "exhausted", _("attempts spent")
        FAILED = "failed", _("failed for good")
        EXPIRED = "expired", _("expired")
        CANCELLED = "cancelled", _("cancelled")
        INVALID = "invalid", _("invalid")

    id = models.BigIntegerField(primary_key=True)
    reason = models.CharField(_("reason"), max_length=10, choices=Reason)
    last_error = models.TextField(_("last error"), blank=True, db_default="")
    died_at = InstantField(_("died at"), db_default=NowMicroseconds())
    keep_until = InstantField(_("kept until"), null=True, blank=True)

    objects: ClassVar[DeadJobManager] = DeadJobManager()

    class Meta:
        db_table = "__alkstore_dead"
        verbose_name = _("dead job")
        verbose_name_plural = _("dead jobs")
        indexes = [
            models.Index(fields=["died_at", "id"], name="alkstore_dead_died"),
            models.Index(
                fields=["keep_until"],
                condition=Q(keep_until__isnull=False),
                name="alkstore_dead_keep_until",
            ),
            models.Index(
                fields=["died_at"],
                condition=Q(keep_until__isnull=True),
                name="alkstore_dead_retention",
            ),
        ]
