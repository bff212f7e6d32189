"""How an order comes in, from the site's form or from the demonstration."""

from __future__ import annotations

from django.db import transaction

from example_project.shop.models import Order
from example_project.shop.tasks import send_receipt


def place(order: Order) -> Order:
    """Store an order together with the job that sends its receipt: both, or neither."""
    with transaction.atomic():
        order.save()
        order.receipt_job = send_receipt.enqueue(order.pk).pk
        order.save(update_fields=["receipt_job"])
    return order
