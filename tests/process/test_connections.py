"""How many connections a worker holds, whose they are, and what a pool does to them."""

from __future__ import annotations

import pytest

from django_alkstore.models import DeadJob, Worker
from tests import tasks
from tests.engine.scenes import commits
from tests.engine.steps import run_sql
from tests.models import Effect
from tests.process.conftest import SOON, RunSite, drained
from tests.waiting import wait_until

pytestmark = commits

THREADS = 8
JOBS = 150
DEFAULT = "DATABASES['default']"


def sessions() -> int:
    """Return how many sessions others than this one have on the tests' database."""
    ((count,),) = run_sql(
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    return int(count)


@pytest.mark.postgresql_only
@pytest.mark.parametrize("max_age", ["0", "600"])
def test_a_worker_holds_a_connection_for_each_thread_and_two_more(
    run_site: RunSite, max_age: str
) -> None:
    """
    B156: while many jobs run, and after.

    The ORM calls of async ones share a third.
    """
    wait_until(lambda: sessions() == 0)
    tasks.record.enqueue_many([(str(number),) for number in range(JOBS)])
    run_site(
        f"{DEFAULT}['CONN_MAX_AGE'] = {max_age}\n", *SOON, "--threads", str(THREADS)
    )
    wait_until(Effect.objects.exists)

    plain = most_until_drained()
    tasks.record.enqueue_many([(f"more {number}",) for number in range(JOBS)])
    tasks.async_record.enqueue_many([(f"async {number}",) for number in range(JOBS)])
    mixed = most_until_drained()

    assert 0 < plain <= THREADS + 2
    assert 0 < mixed <= THREADS + 3
    assert Effect.objects.count() == 3 * JOBS


def most_until_drained() -> int:
    """Return how many sessions there were at most, until no job was left."""
    most = 0

    def look() -> bool:
        nonlocal most
        most = max(most, sessions())
        return drained()

    wait_until(look)
    return max(most, sessions())


@pytest.mark.postgresql_only
def test_processes_of_a_site_with_a_pool_have_pools_of_their_own(
    run_site: RunSite,
) -> None:
    """B041: the site has used its pool before the processes are started."""
    pool = f"{DEFAULT}['OPTIONS'] = {{'pool': {{'min_size': 1, 'max_size': 6}}}}\n"
    app = (
        "from django.apps import AppConfig\n"
        "class Config(AppConfig):\n"
        "    name = 'asks_early'\n"
        "    def ready(self):\n"
        "        import warnings\n"
        "        from django.db import connection\n"
        "        warnings.simplefilter('ignore')\n"
        "        connection.ensure_connection()\n"
    )
    worker = run_site(
        pool + "INSTALLED_APPS = [*INSTALLED_APPS, 'asks_early.Config']\n",
        *SOON, "--processes", "2", "--threads", "2",
        asks_early=app,
    )  # fmt: skip
    wait_until(lambda: Worker.objects.count() == 2)
    tasks.record.enqueue_many([(str(number),) for number in range(100)])
    wait_until(drained)

    assert Effect.objects.count() == 100
    assert not DeadJob.objects.exists()
    assert worker.stop() == 0
    ends = [line for line in worker.output.splitlines() if "event=child_ended" in line]
    assert all("status=0" in line for line in ends)


@pytest.mark.django_db(transaction=True, databases=["default", "other"])
def test_a_worker_goes_where_the_router_says(run_site: RunSite) -> None:
    """
    B115: the database that the router names has the jobs; the other lacks even tables.
    """
    router = (
        "class Router:\n"
        "    def db_for_read(self, model, **hints):\n"
        "        ours = model._meta.app_label == 'django_alkstore'\n"
        "        return 'other' if ours else None\n"
        "    db_for_write = db_for_read\n"
    )
    job = tasks.add.using(using="other").enqueue(1, 2)
    tasks.record_once.using(using="other").enqueue("in the default one")
    tasks.noop.enqueue()

    worker = run_site(
        "DATABASE_ROUTERS = ['to_other.Router']\n", "--batch", to_other=router
    )

    assert worker.wait() == 0
    assert tasks.add.using(using="other").get_result(job.pk).return_value == 3
    assert Effect.objects.get().key == "in the default one"
    # What was stored past the router is left alone.
    assert run_sql('SELECT attempts FROM "__alkstore_live"') == [(0,)]
