"""The example's pages: what a visitor sees, and which jobs come of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client
from django.test.utils import override_settings

from django_alkstore.models import LiveJob
from django_alkstore.testing import run_jobs
from example_project.shop.models import Item, Message, Order
from example_project.shop.orders import place

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def shop() -> Iterator[None]:
    """The example's own addresses."""
    with override_settings(ROOT_URLCONF="example_project.urls"):
        yield


@pytest.fixture
def item() -> Item:
    return Item.objects.create(name="<b>Pot</b>", price=2490)


def test_the_form_stores_the_order_and_the_receipts_job(
    client: Client, item: Item
) -> None:
    answer = client.post(
        "/", {"item": item.pk, "quantity": 2, "email": "ada@example.com"}
    )

    order = Order.objects.get()
    assert answer.headers["Location"] == f"/orders/{order.pk}/"
    job = LiveJob.objects.get()
    assert (order.receipt_job, job.queue) == (job.pk, "shop")


@pytest.mark.parametrize("field", ["item", "quantity", "email"])
def test_a_wrong_form_stores_nothing(client: Client, item: Item, field: str) -> None:
    data = {"item": item.pk, "quantity": 2, "email": "ada@example.com", field: "0"}

    answer = client.post("/", data)

    assert "errorlist" in answer.content.decode()
    assert not Order.objects.exists()
    assert not LiveJob.objects.exists()


def test_an_order_that_rolls_back_takes_its_job_along(item: Item) -> None:
    with pytest.raises(ConnectionError), transaction.atomic():
        place(Order(item=item, quantity=1, email="ada@example.com"))
        raise ConnectionError

    assert not Order.objects.exists()
    assert not LiveJob.objects.exists()


def test_the_page_waits_for_the_receipt_and_then_shows_it(
    client: Client, item: Item
) -> None:
    order = place(Order(item=item, quantity=2, email="ada@example.com"))
    before = client.get(order.get_absolute_url()).content.decode()

    run_jobs()

    after = client.get(order.get_absolute_url()).content.decode()
    assert 'http-equiv="refresh"' in before
    assert 'http-equiv="refresh"' not in after
    assert Message.objects.get().text in ("2 x <b>Pot</b>, € 49.80. Thank you!",)
    assert "&lt;b&gt;Pot&lt;/b&gt;, € 49.80" in after


def test_what_customers_wrote_is_escaped(client: Client, item: Item) -> None:
    place(Order(item=item, quantity=1, email='"<i>ada</i>"@example.com'))

    page = client.get("/").content.decode()

    assert "<i>ada" not in page
    assert "<b>Pot" not in page


@pytest.mark.parametrize("model", ["livejob", "deadjob", "result", "attempt", "worker"])
def test_the_admin_shows_the_queues_tables(
    client: Client, model: str, item: Item
) -> None:
    place(Order(item=item, quantity=1, email="ada@example.com"))
    client.force_login(User.objects.create_superuser("demo"))

    answer = client.get(f"/admin/django_alkstore/{model}/")

    assert answer.status_code == 200
