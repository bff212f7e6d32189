"""Where Django starts: the checks are registered, the tasks found, and nothing else."""

from __future__ import annotations

from django.apps import AppConfig
from django.db.models.signals import post_migrate
from django.utils.module_loading import autodiscover_modules
from django.utils.translation import gettext_lazy as _


class AlkstoreConfig(AppConfig):
    """The app. Its ``ready`` opens no connection and starts no thread."""

    name = "django_alkstore"
    verbose_name = _("Job queue")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the checks and import each installed app's ``tasks`` module."""
        from django_alkstore import checks, counter

        checks.register_all()
        post_migrate.connect(counter.after_migrate, sender=self)
        autodiscover_modules("tasks")
