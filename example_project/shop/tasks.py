"""The shop's background work. django_alkstore finds this module by its name."""

from __future__ import annotations

import time

from django_alkstore import Context, constant, task
from example_project.shop.models import Message, Order

# Results are kept for an hour, so that the demonstration can tell how each job ended.
HOUR = 3600


class WarehouseBusy(Exception):
    """Nobody at the warehouse picks up the telephone."""


class CardDeclined(Exception):
    """The bank says no."""


@task(queue="shop", transactional=True, result_ttl=HOUR)
def send_receipt(order_id: int) -> str:
    """
    Write the receipt into the outbox.

    It is transactional: the outbox row and the end of the job are one commit, so there
    is exactly one receipt, whenever a worker dies.
    """
    order = Order.objects.select_related("item").get(pk=order_id)
    text = f"{order.quantity} x {order.item.name}, {order.total}. Thank you!"
    Message.objects.create(order=order, kind=Message.Kind.RECEIPT, text=text)
    return text


@task(
    queue="shop",
    max_attempts=5,
    backoff=constant(0.5),
    takes_context=True,
    transactional=True,
    result_ttl=HOUR,
)
def tell_warehouse(context: Context, order_id: int, busy: int = 0) -> None:
    """Tell the warehouse, which is busy for the first ``busy`` attempts."""
    if context.attempt <= busy:
        raise WarehouseBusy(f"nobody answered call {context.attempt}")
    text = f"told at attempt {context.attempt}"
    Message.objects.create(order_id=order_id, kind=Message.Kind.WAREHOUSE, text=text)


@task(queue="shop", max_attempts=2, backoff=constant(0.5), result_ttl=HOUR)
def charge_card(order_id: int) -> None:
    """Charge a card that is declined each time."""
    raise CardDeclined(f"the card for order {order_id} has no cover")


@task(
    queue="shop",
    visibility_timeout=2,
    max_attempts=3,
    takes_context=True,
    result_ttl=HOUR,
)
def pack_parcel(context: Context, order_id: int, cartons: int = 3) -> None:
    """
    Pack for longer than the visibility timeout; the worker extends the claim meanwhile.

    When the worker is killed nobody extends it, and another one runs the job again.
    """
    for carton in range(1, cartons + 1):
        time.sleep(1)
        if context.cancelled:
            return
        context.progress(carton, cartons, "cartons are packed")
    text = f"packed at attempt {context.attempt}"
    Message.objects.create(order_id=order_id, kind=Message.Kind.PARCEL, text=text)
