"""The shop's pages and the admin."""

from __future__ import annotations

from django.contrib import admin
from django.urls import path

from example_project.shop import views

urlpatterns = [
    path("", views.PlaceOrder.as_view(), name="shop"),
    path("orders/<int:pk>/", views.OrderPage.as_view(), name="order"),
    path("admin/", admin.site.urls),
]
