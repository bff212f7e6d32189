"""``__alkstore_live``: the jobs that wait or run. Finished rows leave it."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import ExpressionWrapper, F, Q, Value
from django.db.models.lookups import GreaterThanOrEqual, LessThanOrEqual
from django.utils.translation import gettext_lazy as _

from django_alkstore import clock, options
from django_alkstore.managers.live_job import LiveJobManager
from django_alkstore.models.job import JobRow

MAX_BIGINT = 2**63 - 1


def _within(column: str, least: int, most: int) -> Q:
    # Plus zero: text, which SQLite takes for a number that is none, is let in, to die
    # by itself when it is claimed.
    number = ExpressionWrapper(F(column) + Value(0), models.BigIntegerField())
    return Q(GreaterThanOrEqual(number, least)) & Q(LessThanOrEqual(number, most))


class LiveJob(JobRow):
    """
    A job that is scheduled (``run_at`` ahead), pending or processing.

    ``created`` says of an enqueued job whether this call stored it, or found the job
    that holds its unique key.
    """

    class State(models.TextChoices):
        SCHEDULED = "scheduled", _("scheduled")
        PENDING = "pending", _("pending")
        PROCESSING = "processing", _("processing")

    id = models.BigAutoField(primary_key=True)
    # A raw INSERT need not know whether it is due: the next claim promotes it.
    state = models.CharField(
        _("state"), max_length=10, choices=State, db_default=State.SCHEDULED
    )

    created = True

    objects: ClassVar[LiveJobManager] = LiveJobManager()

    class Meta:
        db_table = "__alkstore_live"
        verbose_name = _("live job")
        verbose_name_plural = _("live jobs")
        # One small index for each question, so that no claim ever steps over a row
        # that it does not want: neither one for later nor one that runs.
        indexes = [
            models.Index(
                F("queue"),
                F("priority").desc(),
                F("run_at"),
                F("id"),
                condition=Q(state="pending", task=""),
                name="alkstore_live_pending_raw",
            ),
            models.Index(
                F("queue"),
                F("priority").desc(),
                F("run_at"),
                F("id"),
                condition=Q(state="pending", task__gt=""),
                name="alkstore_live_pending_task",
            ),
            models.Index(
                fields=["queue", "run_at", "id"],
                condition=Q(state="scheduled"),
                name="alkstore_live_scheduled",
            ),
            models.Index(
                fields=["queue", "claim_expires_at"],
                condition=Q(state="processing", attempts__lt=F("max_attempts")),
                name="alkstore_live_running",
            ),
            models.Index(
                fields=["queue", "claim_expires_at"],
                condition=Q(state="processing", attempts__gte=F("max_attempts")),
                name="alkstore_live_last_attempt",
            ),
            models.Index(
                fields=["queue", "expires_at"],
                condition=Q(expires_at__isnull=False),
                name="alkstore_live_expires",
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["queue", "unique_key"],
                condition=Q(unique_key__isnull=False),
                name="alkstore_live_unique_key",
            ),
            # Raw SQL may insert rows; none of them may be one that nothing reaches.
            models.CheckConstraint(
                condition=Q(state__in=["scheduled", "pending"])
                | Q(state="processing", claim_expires_at__isnull=False),
                name="alkstore_live_state",
            ),
            models.CheckConstraint(
                condition=~Q(queue=""), name="alkstore_live_queue_named"
            ),
            # SQLite keeps a text in a column of numbers, above all of them: no clock
            # would ever reach it.
            models.CheckConstraint(
                condition=Q(run_at__lte=MAX_BIGINT)
                & (Q(claim_expires_at=None) | Q(claim_expires_at__lte=MAX_BIGINT)),
                name="alkstore_live_instants",
            ),
            # Numbers that a statement's arithmetic would overflow with, and so fail for
            # every row beside this one.
            models.CheckConstraint(
                condition=_within("run_at", clock.MIN_INSTANT, clock.MAX_INSTANT)
                & _within("claim_expires_at", clock.MIN_INSTANT, clock.MAX_INSTANT)
                & _within("expires_at", clock.MIN_INSTANT, clock.MAX_INSTANT)
                & _within("created_at", clock.MIN_INSTANT, clock.MAX_INSTANT)
                & _within("visibility_timeout", 0, clock.MAX_DURATION)
                & _within("dead_letter_retention", 0, clock.MAX_DURATION)
                & _within("result_ttl", 0, clock.MAX_DURATION)
                & _within("timeout", 0, clock.MAX_DURATION)
                & _within("attempts", -options.MAX_ATTEMPTS, options.MAX_ATTEMPTS - 1),
                name="alkstore_live_numbers",
            ),
        ]
