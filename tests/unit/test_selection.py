"""Which queues a worker serves, and in which turn."""

from __future__ import annotations

import pytest

from django_alkstore.jobs import QueueSurvey
from django_alkstore.worker.selection import Selection


def survey(*names: str) -> list[QueueSurvey]:
    return [QueueSurvey(name, True, False, None, None) for name in names]


@pytest.mark.parametrize(
    ("queues", "exclude", "served"),
    [
        ([], [], ["a", "ab", "b", "*"]),
        (["a"], [], ["a"]),
        (["a*"], [], ["a", "ab"]),
        (["a*", "b"], ["ab"], ["a", "b"]),
        ([], ["a*"], ["b", "*"]),
        (["*"], ["b"], ["a", "ab", "*"]),
        (["missing"], [], []),
    ],
)
def test_names_and_prefixes_choose_and_exclude(
    queues: list[str], exclude: list[str], served: list[str]
) -> None:
    selection = Selection(queues, exclude)

    assert list(selection.ours(survey("a", "ab", "b", "*"))) == served


def test_each_round_begins_one_queue_further() -> None:
    selection = Selection()
    begun = []
    for _ in range(6):
        first = selection.in_turn({"c", "a", "b"})[0]
        begun.append(first)
        selection.begun_with(first)

    assert begun == ["a", "b", "c", "a", "b", "c"]


def test_queues_that_come_and_go_lose_nobody_the_turn() -> None:
    selection = Selection()
    selection.begun_with("b")

    assert selection.in_turn(["a", "c", "d"]) == ["c", "d", "a"]
    selection.begun_with("c")
    assert selection.in_turn(["a", "b"]) == ["a", "b"]


def test_a_selection_says_what_it_serves() -> None:
    assert str(Selection()) == "*"
    assert str(Selection(["a", "b*"], ["bc"])) == "a,b* without bc"
