"""The columns that a job carries through its whole life, whichever table it is in."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db import models
from django.utils.translation import gettext_lazy as _

from django_alkstore import backoff, options
from django_alkstore.fields import InstantField, SpanField
from django_alkstore.payload import loads
from django_alkstore.sql.expressions import NowMicroseconds


class JobRow(models.Model):
    """
    One job. The row keeps its id when it moves from the live to another table.

    Each default lives in the database too, so that a plain ``INSERT INTO
    "__alkstore_live" (queue, payload)`` from any language is a whole job.
    """

    queue = models.CharField(_("queue"), max_length=options.MAX_QUEUE_LENGTH)
    task = models.CharField(
        _("task"), max_length=options.MAX_TASK_LENGTH, blank=True, db_default=""
    )
    payload = models.TextField(_("payload"))
    priority = models.IntegerField(_("priority"), db_default=0)
    run_at = InstantField(_("run at"), db_default=NowMicroseconds())
    attempts = models.IntegerField(_("attempts"), db_default=0)
    max_attempts = models.IntegerField(_("most attempts"), db_default=3)
    created_at = InstantField(_("created at"), db_default=NowMicroseconds())
    expires_at = InstantField(_("expires at"), null=True, blank=True)
    worker_id = models.CharField(_("worker"), max_length=200, blank=True, db_default="")
    claimed_at = InstantField(_("claimed at"), null=True, blank=True)
    claim_expires_at = InstantField(_("claim expires at"), null=True, blank=True)
    # The stamps: copied at enqueue, never changed afterwards.
    visibility_timeout = SpanField(
        _("visibility timeout"), db_default=timedelta(seconds=300)
    )
    backoff = models.TextField(_("backoff"), db_default=backoff.DEFAULT_STAMP)
    timeout = SpanField(_("timeout"), null=True, blank=True)
    dead_letter_retention = SpanField(_("kept when dead"), null=True, blank=True)
    result_ttl = SpanField(_("result kept for"), null=True, blank=True)
    unique_key = models.CharField(
        _("unique key"), max_length=options.MAX_KEY_LENGTH, null=True, blank=True
    )

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.task or self.queue} #{self.pk}"

    def decoded_payload(self) -> Any:
        """Return the payload's value. Raise ValueError when it is not JSON."""
        return loads(self.payload)
