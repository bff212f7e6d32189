"""``python3 -m tests``: which steps it takes, and what it ends with."""

from __future__ import annotations

import signal

import pytest

from tests import __main__ as command
from tests import postgresql


class Steps:
    """The steps that were asked for. Each succeeds, but for those in ``failures``."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []
        self.failures: dict[str, int] = {}

    def __call__(self, title: str, *words: str) -> int:
        self.asked.append((title, *words))
        return self.failures.get(title, 0)

    @property
    def titles(self) -> list[str]:
        return list(dict.fromkeys(title for title, *_ in self.asked))


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    steps = Steps()
    monkeypatch.setattr(command, "run", steps)
    monkeypatch.setattr(postgresql, "why_not", lambda: "")
    monkeypatch.delenv("ALKSTORE_REQUIRE_POSTGRESQL", raising=False)
    return steps


def test_the_steps_are_taken_in_order_with_pytests_arguments(steps: Steps) -> None:
    assert command.main(["-k", "claim"]) == 0

    assert steps.titles == ["types", "check", "migrations", "SQLite", "PostgreSQL"]
    for step in steps.asked[-2:]:
        assert step[1] == "pytest"
        assert step[-2:] == ("-k", "claim")


@pytest.mark.parametrize("failing", ["types", "check", "migrations", "SQLite"])
def test_the_first_failure_is_the_end_and_the_status(
    steps: Steps, failing: str
) -> None:
    steps.failures = {failing: 5, "PostgreSQL": 3}

    assert command.main([]) == 5

    assert steps.titles[-1] == failing


def test_without_a_server_its_tests_are_left_out_and_it_says_so(
    steps: Steps, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(postgresql, "why_not", lambda: "no server")

    assert command.main([]) == 0

    assert steps.titles[-1] == "SQLite"
    assert "PostgreSQL is left out: no server" in capsys.readouterr().out


def test_a_required_server_that_is_missing_is_an_error(
    steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgresql, "why_not", lambda: "no server")
    monkeypatch.setenv("ALKSTORE_REQUIRE_POSTGRESQL", "1")

    assert command.main([]) == 1

    assert steps.asked == []


def test_a_step_that_a_signal_ends_has_a_shells_status(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("subprocess.Popen", Killed)

    assert command.run("types", "mypy") == 128 + signal.SIGKILL


class Killed:
    def __init__(self, *args: object, **kwargs: object) -> None:
        pass

    def wait(self) -> int:
        return -signal.SIGKILL


def test_a_port_where_nobody_listens_is_said_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PGHOST", "127.0.0.1")
    monkeypatch.setenv("PGPORT", "1")

    said = postgresql.why_not()

    assert said.startswith("no PostgreSQL at 127.0.0.1:1 (")
    assert "\n" not in said
