"""
Run every check there is: types, system checks, and the tests on each engine.

``python3 -m tests [arguments of pytest]``. It stops at the first step that fails, with
that step's exit status. PostgreSQL is looked for at 127.0.0.1:5432, or where libpq's
environment variables (PGHOST, PGPORT, PGUSER, PGPASSWORD) say; it is left out when none
answers, unless ALKSTORE_REQUIRE_POSTGRESQL is 1. The last line is pytest's own summary.
"""

import os
import subprocess
import sys

from example_project import bootstrap

SETTINGS = {
    "SQLite": "tests.settings.sqlite",
    "PostgreSQL": "tests.settings.postgresql",
}


def main(arguments: "list[str]") -> int:
    """Run the steps in order. Return the first exit status that is not 0, or 0."""
    from tests import postgresql

    engines = ["SQLite"]
    missing = postgresql.why_not()
    if not missing:
        engines.append("PostgreSQL")
    elif os.environ.get("ALKSTORE_REQUIRE_POSTGRESQL") == "1":
        print("PostgreSQL is required here, but there is %s." % missing)
        return 1

    status = run("types", "mypy")
    for settings in (SETTINGS["SQLite"], "example_project.settings"):
        there = "--settings=" + settings
        check = ["check", "--fail-level=WARNING", there]
        status = status or run("check", "django", *check)
        migrations = ["makemigrations", "--check", "--dry-run", there]
        status = status or run("migrations", "django", *migrations)
    if missing and not status:
        print("\n== PostgreSQL is left out: %s" % missing, flush=True)
    for engine in engines:
        status = status or run(engine, "pytest", "--ds=" + SETTINGS[engine], *arguments)
    return status


def run(title: str, module: str, *arguments: str) -> int:
    """Run ``python -m module`` in the checkout. Return its status, as a shell's."""
    print("\n== %s: %s" % (title, " ".join((module,) + arguments)), flush=True)
    command = [sys.executable, "-m", module] + list(arguments)
    # No step is about the example's own database, nor makes its file.
    environment = dict(os.environ, EXAMPLE_SQLITE=":memory:", EXAMPLE_POSTGRESQL="")
    process = subprocess.Popen(command, cwd=str(bootstrap.ROOT), env=environment)
    while True:
        # Ctrl-C reaches the step too. It ends in its own time: pytest has databases to
        # drop and workers to stop.
        try:
            status = process.wait()
        except KeyboardInterrupt:
            continue
        return 128 - status if status < 0 else status


if __name__ == "__main__":
    bootstrap.enter("tests")
    sys.exit(main(sys.argv[1:]))
