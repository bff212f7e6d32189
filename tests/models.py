"""A tiny domain for the jobs of the tests to work on."""

from __future__ import annotations

from django.db import models


class Order(models.Model):
    """What a customer wants, and whether the customer was told that it came in."""

    number = models.CharField(max_length=50, unique=True)
    notified = models.BooleanField(default=False)

    def __str__(self) -> str:
        return self.number


class Effect(models.Model):
    """One trace of one run of a task. Not unique: a second run shows as a second."""

    key = models.CharField(max_length=200)
    note = models.CharField(max_length=200, default="")

    def __str__(self) -> str:
        return self.key
