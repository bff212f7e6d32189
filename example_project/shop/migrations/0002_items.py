"""Put something on the shelves."""

from __future__ import annotations

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

ITEMS = {"Teapot": 2490, "Cup": 650, "Tin of green tea": 1180}


def stock(apps: Apps, editor: BaseDatabaseSchemaEditor) -> None:
    items = apps.get_model("shop", "Item")
    items.objects.using(editor.connection.alias).bulk_create(
        [items(name=name, price=price) for name, price in ITEMS.items()]
    )


class Migration(migrations.Migration):
    dependencies = [("shop", "0001_initial")]

    operations = [migrations.RunPython(stock, migrations.RunPython.noop)]
