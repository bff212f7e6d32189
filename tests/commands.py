"""The management commands of the package, and the options that each one has."""

from __future__ import annotations

from django.core.management import get_commands, load_command_class
from django.core.management.base import BaseCommand

COMMANDS = sorted(
    name for name, app in get_commands().items() if app == "django_alkstore"
)


def flags_of(name: str, *, all_of_them: bool = False) -> set[str]:
    """Return the long options of a command, without those that every command has."""
    command = load_command_class("django_alkstore", name)
    parser = command.create_parser("", name)
    flags = {flag for action in parser._actions for flag in action.option_strings}
    if all_of_them:
        return flags
    base = BaseCommand().create_parser("", "")
    common = {flag for action in base._actions for flag in action.option_strings}
    return {flag for flag in flags - common if flag.startswith("--")}
