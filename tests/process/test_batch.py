"""Workers that end by themselves, and databases that none works on."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command
from django.db import connections

from django_alkstore import queue
from django_alkstore.models import DeadJob, LiveJob
from tests import tasks
from tests.models import Effect
from tests.processes import WorkerProcesses

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_batch_runs_what_is_due_with_what_follows_from_it_and_ends(
    run_worker: WorkerProcesses,
) -> None:
    tasks.fail_times.enqueue(2, "after retries")
    tasks.record.using(delay=3600).enqueue("later")
    tasks.record.using(queue="other").enqueue("other")
    tasks.async_record.enqueue("async")
    queue("raw").enqueue({"not": "ours"})

    assert run_worker("--batch").wait() == 0

    effects = set(Effect.objects.values_list("key", flat=True))
    assert effects == {"after retries", "other", "async"}
    assert set(LiveJob.objects.values_list("queue", flat=True)) == {"default", "raw"}


def test_a_batch_of_chosen_queues_in_two_processes_leaves_the_others(
    run_worker: WorkerProcesses,
) -> None:
    for name in ("mail", "mail-slow", "report"):
        tasks.record.using(queue=name).enqueue_many([(name,)] * 40)

    worker = run_worker(
        "--batch", "--processes", "2", "--queues", "mail*", "--exclude", "mail-slow"
    )

    assert worker.wait() == 0
    assert [effect.key for effect in Effect.objects.all()] == ["mail"] * 40


def test_a_worker_says_what_it_serves_and_which_job_wrote_a_line(
    run_worker: WorkerProcesses,
) -> None:
    job = tasks.report.enqueue(2)

    worker = run_worker("--batch", "--threads", "3", "--queues", "default,mail*")

    assert worker.wait() == 0
    assert "threads=3 queues=default,mail*\n" in worker.output
    line = f" INFO job={job.pk} task=tests.tasks.report step 2 of 2\n"
    assert line in worker.output


def test_max_jobs_ends_after_exactly_so_many(run_worker: WorkerProcesses) -> None:
    tasks.record.enqueue_many([(str(n),) for n in range(30)])

    assert run_worker("--max-jobs", "11").wait() == 0
    assert Effect.objects.count() == 11
    left = list(LiveJob.objects.values_list("state", "attempts"))
    assert left == [("pending", 0)] * 19


def test_max_memory_ends_a_process_that_holds_more(run_worker: WorkerProcesses) -> None:
    worker = run_worker("--max-memory", "1")

    assert worker.wait() == 0
    assert "event=memory_limit" in worker.output


def test_an_unknown_database_is_refused_with_a_sentence() -> None:
    with pytest.raises(CommandError, match="no database 'nowhere' in DATABASES"):
        call_command("alkstore_worker", "--database", "nowhere")


@pytest.mark.sqlite_only
def test_a_database_in_memory_is_refused_with_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """B163."""
    monkeypatch.setitem(connections["default"].settings_dict, "NAME", ":memory:")

    with pytest.raises(CommandError, match="in memory, where no other process can see"):
        call_command("alkstore_worker", "--batch")


@pytest.mark.django_db(transaction=True, databases=["default", "other"])
def test_jobs_of_another_database_are_run_there(run_worker: WorkerProcesses) -> None:
    job = tasks.add.using(using="other").enqueue(1, 2)

    assert run_worker("--batch", "--database", "other").wait() == 0
    assert tasks.add.using(using="other").get_result(job.pk).return_value == 3


def test_an_unknown_task_and_a_strange_payload_die_and_the_rest_runs(
    run_worker: WorkerProcesses,
) -> None:
    """B081, B100."""
    unknown = [tasks.noop.enqueue().pk for _ in range(2)]
    LiveJob.objects.filter(pk__in=unknown).update(task="tests.gone.tasks.old")
    shape = tasks.noop.enqueue()
    LiveJob.objects.filter(pk=shape.pk).update(payload='{"args": 1}')
    text = tasks.noop.enqueue()
    LiveJob.objects.filter(pk=text.pk).update(payload="hello")
    tasks.record.enqueue_many([(str(n),) for n in range(10)])

    assert run_worker("--batch").wait() == 0

    assert Effect.objects.count() == 10
    letters = {letter.pk: letter for letter in DeadJob.objects.all()}
    assert letters.keys() == {*unknown, shape.pk, text.pk}
    assert {letter.reason for letter in letters.values()} == {"invalid"}
    assert "tests.gone.tasks.old" in letters[unknown[0]].last_error
    assert letters[text.pk].payload == "hello"


def test_a_batch_without_tables_says_so_instead_of_waiting_for_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(LiveJob._meta, "db_table", "no_such_table")

    with pytest.raises(CommandError, match="run manage.py migrate first$"):
        call_command("alkstore_worker", batch=True)
