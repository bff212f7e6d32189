"""The order form."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django import forms

from example_project.shop.models import Order

if TYPE_CHECKING:
    ModelForm = forms.ModelForm[Order]
else:
    ModelForm = forms.ModelForm


class OrderForm(ModelForm):
    """What a customer is asked."""

    class Meta:
        model = Order
        fields = ["item", "quantity", "email"]
