"""
The demonstration, from an empty folder to the words on how to look around.

It may be run again and again. It starts workers, one at a time, and leaves none.
"""

from __future__ import annotations

import os
import secrets
import sys

import django
from django.core.management import call_command

USER = "demo"


def main() -> int:
    """Run the demonstration. Return 0, or 1 when something was not as it should be."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "example_project.settings")
    django.setup()
    call_command("migrate", verbosity=0)

    # Models, and what uses them, can be imported from here on.
    from example_project.story import tell
    from example_project.workers import DemonstrationFailed, Workers, somebody_elses

    if worker := somebody_elses():
        print(
            f"A worker (process {worker.pid} on {worker.host}) runs on this database,"
            " and would take the jobs of the one that is killed here. Stop it first."
        )
        return 1
    try:
        with Workers() as workers:
            tell(workers)
    except DemonstrationFailed as failure:
        print(f"\nThe demonstration failed: {failure}")
        return 1
    except KeyboardInterrupt:
        return 130
    print_how_to_look_around()
    return 0


def print_how_to_look_around() -> None:
    """Tell how to open the site, with a password that only this run's reader knows."""
    print(
        f"""
Look around yourself, in two terminals:
   python3 -m example_project alkstore_worker --verbosity 2
   python3 -m example_project runserver
The shop is at http://127.0.0.1:8000/ and the admin at http://127.0.0.1:8000/admin/
(user {USER}, password {renew_user()}, new with each demonstration)."""
    )


def renew_user() -> str:
    """Make the admin's user, or give it another password. Return the password."""
    from django.contrib.auth import get_user_model

    password = secrets.token_urlsafe(9)
    user, _ = get_user_model().objects.get_or_create(
        username=USER, defaults={"is_staff": True, "is_superuser": True}
    )
    user.set_password(password)
    user.save()
    return password


if __name__ == "__main__":
    sys.exit(main())
