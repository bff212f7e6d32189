"""
``__alkstore_results``: what finished jobs returned, for as long as it was asked for.
"""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from django_alkstore.fields import InstantField
from django_alkstore.managers.result import ResultManager
from django_alkstore.models.job import JobRow
from django_alkstore.payload import loads
from django_alkstore.sql.expressions import NowMicroseconds


class Result(JobRow):
    """The result of a finished job, under the id that it had in the live table."""

    id = models.BigIntegerField(primary_key=True)
    value = models.TextField(_("value"))
    finished_at = InstantField(_("finished at"), db_default=NowMicroseconds())
    keep_until = InstantField(_("kept until"))

    objects: ClassVar[ResultManager] = ResultManager()

    class Meta:
        db_table = "__alkstore_results"
        verbose_name = _("result")
        verbose_name_plural = _("results")
        indexes = [
            models.Index(fields=["keep_until"], name="alkstore_results_keep_until"),
        ]

    def decoded_value(self) -> Any:
        """Return what the job returned. Raise ValueError when it is not JSON."""
        return loads(self.value)
