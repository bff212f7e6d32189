"""What a running task can say, and what is kept of it."""

from __future__ import annotations

import json
import logging
import threading

import pytest

from django_alkstore.context import MAX_PROGRESS_MESSAGE, Context
from django_alkstore.jobs import MAX_LOG
from django_alkstore.options import JobOptions


@pytest.fixture
def context() -> Context:
    return Context.detached(JobOptions.build("emails", task="shop.send"), "default")


def test_progress_is_kept_as_json_and_the_last_one_counts(context: Context) -> None:
    context.progress(1, 3)
    context.progress(2.5, 3, "almost")

    assert json.loads(context.notes.progress or "") == {
        "done": 2.5,
        "total": 3,
        "message": "almost",
    }


def test_progress_of_unknown_total_is_kept(context: Context) -> None:
    context.progress(17)

    assert json.loads(context.notes.progress or "")["total"] is None


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("1",), TypeError),
        ((True,), TypeError),
        ((float("nan"),), ValueError),
        ((1, "2"), TypeError),
        ((1, float("inf")), ValueError),
        ((1, 2, b"x"), TypeError),
    ],
)
def test_progress_that_is_no_number_is_refused(
    context: Context, arguments: tuple[float, float, str], error: type[Exception]
) -> None:
    with pytest.raises(error):
        context.progress(*arguments)

    assert context.notes.progress is None


def test_a_progress_message_is_escaped_and_cut(context: Context) -> None:
    context.progress(1, 2, "a\x00b\ud800" + "x" * 5_000)

    message = json.loads(context.notes.progress or "")["message"]
    assert message.startswith("a\\x00b\\ud800x")
    assert len(message) == MAX_PROGRESS_MESSAGE


def test_log_lines_of_every_level_are_kept_with_time_and_level(
    context: Context,
) -> None:
    context.logger.debug("one %s", 1)
    context.logger.warning("two")

    first, second = context.notes.log.splitlines()
    assert first.endswith("Z DEBUG one 1")
    assert second.endswith("Z WARNING two")


def test_log_lines_go_to_normal_logging_with_the_job_and_the_callers_line(
    context: Context, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="django_alkstore.job"):
        context.logger.info("sent %s", 3)
        context.logger.debug("hidden")

    (record,) = caplog.records
    assert record.getMessage() == "sent 3"
    assert (record.name, record.funcName) == (
        "django_alkstore.job",
        "test_log_lines_go_to_normal_logging_with_the_job_and_the_callers_line",
    )
    assert record.__dict__["job_task"] == "shop.send"
    assert record.__dict__["job_attempt"] == 1


def test_an_exception_is_kept_with_its_traceback(context: Context) -> None:
    try:
        raise ValueError("bad \x00 byte")
    except ValueError:
        context.logger.exception("it failed")

    assert "ERROR it failed\nTraceback" in context.notes.log
    assert "ValueError: bad \\x00 byte" in context.notes.log


def test_a_line_that_cannot_be_formatted_is_kept_as_it_is(context: Context) -> None:
    logging.raiseExceptions, before = False, logging.raiseExceptions
    try:
        context.logger.info("%d of them", "many")
    finally:
        logging.raiseExceptions = before

    assert context.notes.log.endswith("INFO %d of them\n")


def test_of_a_long_log_the_newest_lines_are_kept(context: Context) -> None:
    for number in range(2_000):
        context.logger.info("line %s %s", number, "x" * 50)

    lines = context.notes.log.splitlines()
    assert len(context.notes.log) <= MAX_LOG
    assert lines[0] == "[…]"
    assert "line 1999 " in lines[-1]
    assert all("INFO line" in line for line in lines[1:])


def test_one_line_longer_than_the_whole_log_loses_its_middle(context: Context) -> None:
    context.logger.info("start %s end", "x" * 3 * MAX_LOG)

    assert len(context.notes.log) <= MAX_LOG
    assert context.notes.log.endswith(" end\n")


def test_lines_of_many_threads_are_all_kept(context: Context) -> None:
    def write() -> None:
        for _ in range(50):
            context.logger.info("x")

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(context.notes.log.splitlines()) == 200


def test_a_heartbeat_that_is_refused_means_cancelled() -> None:
    answers = [True, False]
    options = JobOptions.build("emails", task="shop.send")
    job = Context.detached(options, "default").job
    context = Context(job, heartbeat=lambda: answers.pop(0))

    seen = [(context.heartbeat(), context.cancelled) for _ in range(2)]

    assert seen == [(True, False), (False, True)]
    # Nothing more is asked for once it is lost: there is no third answer.
    assert not context.heartbeat()


def test_the_worker_tells_of_a_cancellation(context: Context) -> None:
    context.cancel()

    assert context.cancelled
    assert not context.heartbeat()
