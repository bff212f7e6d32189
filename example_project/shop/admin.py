"""The shop in the admin, and the queue's tables where nobody else shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest

from example_project.shop.models import Item, Message, Order

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Model]
else:
    ModelAdmin = admin.ModelAdmin


@admin.register(Item)
class ItemAdmin(ModelAdmin):
    list_display = ["name", "price"]


@admin.register(Order)
class OrderAdmin(ModelAdmin):
    list_display = ["__str__", "placed_at", "receipt_job"]
    list_select_related = ["item"]


@admin.register(Message)
class MessageAdmin(ModelAdmin):
    list_display = ["__str__", "text", "sent_at"]
    list_filter = ["kind"]


class LookOnly(ModelAdmin):
    """A table to look at: its rows are changed by the queue, never by hand."""

    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


# django_alkstore comes first in INSTALLED_APPS, so its own pages are there by now.
for model in apps.get_app_config("django_alkstore").get_models():
    if not admin.site.is_registered(model):
        admin.site.register(model, LookOnly)
