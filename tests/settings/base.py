"""What the tests' site has on either engine."""

from __future__ import annotations

import json
import os
import secrets

# A worker that a test starts is told here which databases that run of the tests made:
# alias -> name, as JSON. Empty in the tests' own process.
DATABASES_VARIABLE = "ALKSTORE_TEST_DATABASES"
MADE_ALREADY: dict[str, str] = json.loads(os.environ.get(DATABASES_VARIABLE, "{}"))

# Runs side by side, on one machine or one server, never share a database.
RUN = f"{os.getpid()}_{secrets.token_hex(4)}"

SECRET_KEY = "for the tests alone"
ALLOWED_HOSTS = ["testserver"]
ROOT_URLCONF = "tests.urls"
USE_TZ = True
TIME_ZONE = "UTC"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
STATIC_URL = "static/"

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "django_alkstore",
    "example_project.shop",
    "tests",
]

MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
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
