"""The signals of a job's life and the log lines beside them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from django_alkstore import queue
from django_alkstore.signals import (
    job_dead,
    job_enqueued,
    job_failed,
    job_started,
    job_succeeded,
)
from django_alkstore.testing import run_jobs
from tests import tasks
from tests.models import Effect

pytestmark = pytest.mark.django_db

SIGNALS = {
    "enqueued": job_enqueued,
    "started": job_started,
    "succeeded": job_succeeded,
    "failed": job_failed,
    "dead": job_dead,
}


@pytest.fixture
def told() -> Iterator[list[tuple[str, Any, dict[str, Any]]]]:
    """Every signal that was sent: its name, its sender, its arguments."""
    found: list[tuple[str, Any, dict[str, Any]]] = []
    receivers = []
    for name, signal in SIGNALS.items():

        def receive(sender: Any, name: str = name, **kwargs: Any) -> None:
            del kwargs["signal"]
            found.append((name, sender, kwargs))

        receivers.append((signal, receive))
        signal.connect(receive)
    yield found
    for signal, receive in receivers:
        signal.disconnect(receive)


def test_a_job_that_succeeds_tells_of_three_steps(
    told: list[tuple[str, Any, dict[str, Any]]],
) -> None:
    job = tasks.add.enqueue(1, 2)
    run_jobs()

    assert [(name, sender) for name, sender, _ in told] == [
        ("enqueued", tasks.add), ("started", tasks.add), ("succeeded", tasks.add),
    ]  # fmt: skip
    assert {arguments["job"].id for _, _, arguments in told} == {job.pk}
    assert set(told[2][2]) == {"job", "seconds"}
    assert told[2][2]["seconds"] >= 0


def test_a_job_that_dies_tells_of_each_attempt_and_of_its_death(
    told: list[tuple[str, Any, dict[str, Any]]],
) -> None:
    tasks.fail.using(max_attempts=2).enqueue("no")
    run_jobs()

    assert [name for name, _, _ in told] == [
        "enqueued", "started", "failed", "started", "failed", "dead",
    ]  # fmt: skip
    failed, dead = told[4][2], told[5][2]
    assert str(failed["exception"]) == "no"
    assert dead["reason"] == "exhausted"
    assert isinstance(dead["exception"], tasks.Boom)


def test_a_raw_job_has_no_sender(told: list[tuple[str, Any, dict[str, Any]]]) -> None:
    queue("raw").enqueue(1)
    queue("raw").enqueue_many([1, 2])

    assert [(name, sender) for name, sender, _ in told] == [("enqueued", None)] * 2
    assert len(told[1][2]["jobs"]) == 2


def test_a_receiver_that_raises_changes_nothing_for_the_job(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def receive(**kwargs: object) -> None:
        raise RuntimeError("not today")

    for signal in SIGNALS.values():
        signal.connect(receive)
    try:
        tasks.record.enqueue("a")
        assert run_jobs().succeeded == 1
    finally:
        for signal in SIGNALS.values():
            signal.disconnect(receive)

    assert Effect.objects.count() == 1
    assert "not today" in caplog.text


def test_each_step_is_a_log_line_of_keys_and_values_without_the_payload(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.DEBUG, logger="django_alkstore.signals"):
        job = tasks.record.enqueue("secret-7")
        tasks.fail.using(max_attempts=1).enqueue("secret-8")
        run_jobs()

    lines = [(r.levelname, r.getMessage()) for r in caplog.records]
    name = f"job={job.pk} queue=default task=tests.tasks.record"
    assert ("DEBUG", f"event=enqueued {name}") in lines
    assert ("DEBUG", f"event=started {name} attempt=1/3") in lines
    events = [line.split()[0] for _, line in lines]
    assert events.count("event=succeeded") == 1
    assert [level for level, line in lines if "event=dead" in line] == ["ERROR"]
    assert any("exception=Boom" in line for _, line in lines)
    assert not any("secret" in line for _, line in lines)
