"""
Settings of the shop: for a look around on your own machine, not for a server.

``EXAMPLE_SQLITE``       the SQLite file (``example_project/shop.sqlite3``)
``EXAMPLE_POSTGRESQL``   the name of a PostgreSQL database to use instead; where it is,
                         libpq's variables say (PGHOST, PGPORT, PGUSER, PGPASSWORD)
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent

DEBUG = True
# Only this machine can ask. That, and nothing else, is why the key may stand here.
ALLOWED_HOSTS = ["127.0.0.1", "localhost", "[::1]"]
SECRET_KEY = "for the example on your own machine alone"

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_alkstore",
    "example_project.shop",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

ROOT_URLCONF = "example_project.urls"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
STATIC_URL = "static/"
LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True


def sqlite() -> dict[str, Any]:
    """What a queue on SQLite wants: WAL, writers taking turns, a busy timeout."""
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": os.environ.get("EXAMPLE_SQLITE") or HERE / "shop.sqlite3",
        "OPTIONS": {
            "init_command": "PRAGMA journal_mode=WAL",
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
        },
    }


def postgresql(name: str) -> dict[str, Any]:
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": name,
        "HOST": os.environ.get("PGHOST", "127.0.0.1"),
        "PORT": os.environ.get("PGPORT", "5432"),
        "USER": os.environ.get("PGUSER", "postgres"),
        "PASSWORD": os.environ.get("PGPASSWORD", ""),
    }


DATABASE_NAME = os.environ.get("EXAMPLE_POSTGRESQL")
DATABASES = {"default": postgresql(DATABASE_NAME) if DATABASE_NAME else sqlite()}
