"""
The cases that the package answers to, each by at least one test that names it.

They are faults that users of other job queues have reported. A test names those that it
answers in its docstring; a case that no test names any more fails here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
GROUPS = {
    "jobs lost": "B002 B003",
    "stuck rows": "B006 B007 B010",
    "run twice": "B015 B017 B020 B022 B023",
    "SQLite locking": "B027 B029 B032",
    "stale connections": "B033 B034 B037 B041",
    "key races": "B043",
    "transactions": "B048 B049 B051 B053 B055",
    "unique": "B058 B059 B062",
    "shutdown": "B065 B067 B069",
    "handler exceptions": "B071 B072 B074 B076",
    "payloads": "B078 B081 B084 B086 B089 B090 B092 B094",
    "arguments, missing code, cancel": "B098 B100 B102",
    "several databases": "B115",
    "migrations, width of ids": "B118 B119",
    "odd names": "B129 B131",
    "pruning": "B133 B134",
    "priority and order": "B138 B140",
    "retry policy": "B142 B145",
    "delays, dates, time zones": "B147 B149 B150 B152",
    "async handlers": "B154",
    "threads and connections": "B156",
    "memory": "B158 B160",
    "autoreload": "B161",
    "tests": "B163 B164",
    "results": "B179",
}
CASES = [case for group in GROUPS.values() for case in group.split()]


def docstrings() -> Iterator[str]:
    """Yield the docstring of each test there is."""
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                if node.name.startswith("test_"):
                    yield ast.get_docstring(node) or ""


@pytest.fixture(scope="module")
def named() -> set[str]:
    """The cases that tests name."""
    return {case for text in docstrings() for case in re.findall(r"\bB\d{3}\b", text)}


@pytest.mark.parametrize("case", CASES)
def test_a_case_is_named_by_a_test(named: set[str], case: str) -> None:
    assert case in named


def test_a_case_that_a_test_names_is_in_the_table(named: set[str]) -> None:
    assert named - set(CASES) == set()
