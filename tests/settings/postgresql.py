"""The tests on PostgreSQL, in databases of their own; see tests/postgresql.py."""

from __future__ import annotations

from typing import Any

from tests.postgresql import server
from tests.settings.base import *  # noqa: F403
from tests.settings.base import MADE_ALREADY, RUN


def database(alias: str) -> dict[str, Any]:
    where = server()
    return {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": where["host"],
        "PORT": where["port"],
        "USER": where["user"],
        "PASSWORD": where["password"],
        "NAME": MADE_ALREADY.get(alias, where["dbname"]),
        "TEST": {"NAME": f"alkstore_test_{RUN}_{alias}"},
    }


DATABASES = {alias: database(alias) for alias in ("default", "other")}
