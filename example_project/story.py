"""
What the demonstration does and tells. What it prints was read back from the database.

Each run tells of its own orders alone.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from itertools import cycle
from typing import Any

from django.db import connection, transaction
from django.db.models import Count

from django_alkstore import JobSnapshot, queue
from django_alkstore.models import DeadJob, LiveJob
from example_project.shop.models import Item, Message, Order
from example_project.shop.orders import place
from example_project.shop.tasks import charge_card, pack_parcel, tell_warehouse
from example_project.workers import DemonstrationFailed, Workers

SHOP = queue("shop")


def tell(workers: Workers) -> None:
    """Show a job's fates in turn. Raise DemonstrationFailed when one is not as told."""
    name = connection.settings_dict["NAME"]
    print(f"A small shop on {connection.display_name}, {name}")

    orders = place_three_orders()
    roll_one_back()
    send_receipts(workers, orders)
    jobs = [receipt_job(order) for order in orders]
    jobs.append(fail_twice(workers, orders[0]))
    jobs.append(die(workers, orders[1]))
    jobs.append(survive_a_kill(workers, orders[2]))
    sum_up(orders, jobs)


def place_three_orders() -> list[Order]:
    heading("Three orders, each stored in one transaction with the job of its receipt")
    items = list(Item.objects.order_by("pk"))
    if not items:
        raise DemonstrationFailed("the shop sells nothing; add an item in the admin")
    orders = [
        place(Order(item=item, quantity=number, email=f"{who}@example.com"))
        for number, who, item in zip((1, 2, 3), ("ada", "grace", "mary"), cycle(items))
    ]
    for order in orders:
        say(f"{order}; {text_of(receipt_job(order))}")
    return orders


def roll_one_back() -> None:
    heading("A fourth order fails halfway, and its transaction is rolled back")
    item = Item.objects.earliest("pk")
    try:
        with transaction.atomic():
            order = place(Order(item=item, quantity=9, email="nobody@example.com"))
            say(f"inside: {order}; {text_of(receipt_job(order))}")
            raise ConnectionError("the payment service is away")
    except ConnectionError as error:
        say(f"then: {error}")
    if LiveJob.objects.filter(pk=receipt_job(order)).exists():
        raise DemonstrationFailed("the job of a rolled-back order is there")
    there = Order.objects.filter(pk=order.pk).count()
    say(f"after: {there} such orders; {text_of(receipt_job(order))}")


def send_receipts(workers: Workers, orders: list[Order]) -> None:
    heading("A worker starts and sends the receipts")
    say(f"worker: process {workers.start()}")
    for order in orders:
        job = ended(workers, receipt_job(order))
        receipts = order.messages.filter(kind=Message.Kind.RECEIPT)
        say(
            f"order {order.pk}: {text_of(job.id)}; in the outbox:"
            f" {', '.join(repr(receipt.text) for receipt in receipts)}"
        )


def fail_twice(workers: Workers, order: Order) -> int:
    heading("A job fails twice, and succeeds at its third attempt")
    job_id = tell_warehouse.enqueue(order.pk, busy=2).pk
    job = ended(workers, job_id)
    show_failures(job)
    say(f"{text_of(job_id)} after {job.attempts} attempts")
    for message in order.messages.filter(kind=Message.Kind.WAREHOUSE):
        say(f"in the outbox: {message.text!r}")
    return job_id


def die(workers: Workers, order: Order) -> int:
    heading("A job fails each time, and ends as a dead letter")
    job_id = charge_card.enqueue(order.pk).pk
    job = ended(workers, job_id, "dead")
    show_failures(job)
    say(f"{text_of(job_id)} after {job.attempts} attempts")
    say(f"kept until somebody requeues it: {job.last_error}")
    return job_id


def survive_a_kill(workers: Workers, order: Order) -> int:
    heading("A worker is killed with -9 in the middle of a job")
    job_id = pack_parcel.enqueue(order.pk).pk
    job, told = workers.until(lambda: halfway(job_id), "the parcel is half packed")
    say(f"{text_of(job_id)}, attempt {job.attempts}, by worker {job.worker_id}")
    say(f"so far {told['done']} of {told['total']} {told['message']}")
    workers.kill()
    killed = time.monotonic()
    say("killed; nothing could be tidied up")
    left = seconds_left(job_id)
    say(f"{text_of(job_id)}; the dead worker's claim lasts another {left:.1f} s")

    say(f"next worker: process {workers.start()}")
    job = ended(workers, job_id)
    show_failures(job)
    say(
        f"{time.monotonic() - killed:.1f} s after the kill: {text_of(job_id)},"
        f" attempt {job.attempts}, by worker {job.worker_id}"
    )
    for message in order.messages.filter(kind=Message.Kind.PARCEL):
        say(f"in the outbox: {message.text!r}")
    say(f"asked to stop, that worker exits with status {workers.stop()}")
    return job_id


def sum_up(orders: list[Order], jobs: list[int]) -> None:
    heading("In the end")
    say(f"orders: {len(orders)}")
    for row in (
        Message.objects.filter(order__in=orders)
        .values("kind")
        .annotate(count=Count("pk"))
        .order_by("kind")
    ):
        say(f"in the outbox, {Message.Kind(row['kind']).label}: {row['count']}")
    states = [job.state for job in map(SHOP.get_job, jobs) if job]
    say(
        f"jobs: {states.count('finished')} finished,"
        f" {DeadJob.objects.filter(pk__in=jobs).count()} dead,"
        f" {LiveJob.objects.filter(pk__in=jobs).count()} waiting or running"
    )


def ended(workers: Workers, job_id: int, state: str = "finished") -> JobSnapshot:
    """Wait until a job has ended, and insist on how."""

    def look() -> JobSnapshot | None:
        job = SHOP.get_job(job_id)
        return job if job and job.state in ("finished", "dead") else None

    job = workers.until(look, f"job {job_id} has ended")
    if job.state != state:
        raise DemonstrationFailed(f"{text_of(job_id)}, not {state}: {job.last_error}")
    return job


def receipt_job(order: Order) -> int:
    if order.receipt_job is None:
        raise DemonstrationFailed(f"{order} has no job")
    return order.receipt_job


def halfway(job_id: int) -> tuple[JobSnapshot, dict[str, Any]] | None:
    job = SHOP.get_job(job_id)
    if job is None or job.state != "processing" or not job.attempts_history:
        return None
    progress = job.attempts_history[-1].progress
    return None if progress is None else (job, progress)


def seconds_left(job_id: int) -> float:
    job = SHOP.get_job(job_id)
    if job is None or job.claim_expires_at is None:
        raise DemonstrationFailed(f"{text_of(job_id)}, and nobody's claim")
    return (job.claim_expires_at - datetime.now(UTC)).total_seconds()


def show_failures(job: JobSnapshot) -> None:
    for attempt in job.attempts_history:
        if attempt.exception_class:
            kind = attempt.exception_class.rpartition(".")[2]
            say(f"attempt {attempt.attempt}: {kind}: {attempt.message}")


def text_of(job_id: int) -> str:
    job = SHOP.get_job(job_id)
    if job is None:
        return f"job {job_id} does not exist"
    why = f" ({job.reason})" if job.state == "dead" else ""
    return f"job {job_id} is {job.state}{why}"


def heading(text: str) -> None:
    print(f"\n{text}", flush=True)


def say(text: str) -> None:
    print(f"   {text}", flush=True)
