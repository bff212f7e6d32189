"""The shop's two pages: the order form, and what became of an order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.http import HttpResponse, HttpResponseRedirect
from django.views import generic

from django_alkstore import queue
from example_project.shop.forms import OrderForm
from example_project.shop.models import Order
from example_project.shop.orders import place

if TYPE_CHECKING:
    CreateView = generic.CreateView[Order, OrderForm]
    DetailView = generic.DetailView[Order]
else:
    CreateView, DetailView = generic.CreateView, generic.DetailView


class PlaceOrder(CreateView):
    """The order form, and the latest orders."""

    form_class = OrderForm
    template_name = "shop/place_order.html"

    def form_valid(self, form: OrderForm) -> HttpResponse:
        order = place(form.save(commit=False))
        return HttpResponseRedirect(order.get_absolute_url())

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        latest = Order.objects.select_related("item")[:10]
        return super().get_context_data(latest=latest, **kwargs)


class OrderPage(DetailView):
    """One order, its outbox, and the job that sends the receipt."""

    queryset = Order.objects.select_related("item")
    template_name = "shop/order.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        # The job is read here and the outbox later, by the template: if the job has
        # ended, what it wrote in the same transaction is there.
        job_id = self.object.receipt_job
        job = None if job_id is None else queue("shop").get_job(job_id)
        is_waiting = job is not None and job.state not in ("finished", "dead")
        return super().get_context_data(job=job, is_waiting=is_waiting, **kwargs)
