"""What the shop sells, the orders, and what was sent to whom."""

from __future__ import annotations

from django.core.validators import MinValueValidator
from django.db import models
from django.urls import reverse


class Item(models.Model):
    """Something to buy. The price is in cents."""

    name = models.CharField(max_length=100, unique=True)
    price = models.PositiveIntegerField(help_text="in cents")

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return f"{self.name} ({money(self.price)})"


class Order(models.Model):
    """One customer's wish. ``receipt_job`` is the job that sends the receipt."""

    item = models.ForeignKey(Item, on_delete=models.PROTECT)
    quantity = models.PositiveSmallIntegerField(
        default=1, validators=[MinValueValidator(1)]
    )
    email = models.EmailField()
    placed_at = models.DateTimeField(auto_now_add=True)
    receipt_job = models.BigIntegerField(null=True, editable=False)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"order {self.pk}: {self.quantity} x {self.item.name} for {self.email}"

    def get_absolute_url(self) -> str:
        return reverse("order", args=[self.pk])

    @property
    def total(self) -> str:
        return money(self.quantity * self.item.price)


class Message(models.Model):
    """
    The outbox: what a job sent out, where a real shop would send mail.

    Nothing here is unique. A job whose effect came twice would show as two rows.
    """

    class Kind(models.TextChoices):
        RECEIPT = "receipt", "receipt"
        WAREHOUSE = "warehouse", "note to the warehouse"
        PARCEL = "parcel", "parcel"

    order = models.ForeignKey(Order, on_delete=models.CASCADE, related_name="messages")
    kind = models.CharField(max_length=10, choices=Kind)
    text = models.TextField()
    sent_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} of order {self.order_id}"


def money(cents: int) -> str:
    """Return cents as a price."""
    return f"€ {cents // 100}.{cents % 100:02}"
