"""No page names a thing of ours that does not exist."""

from __future__ import annotations

import ast
import inspect
import re
from importlib import import_module
from typing import Any

import pytest
from django.apps import apps
from django.utils.module_loading import import_string

from django_alkstore import conf, context, jobs, results, signals
from django_alkstore.decorator import Task
from django_alkstore.queues import Queue
from tests.commands import COMMANDS, flags_of
from tests.pages import Page, all_pages, page

MODELS = list(apps.get_app_config("django_alkstore").get_models())
TABLES = {model._meta.db_table for model in MODELS}
FIXTURES = {"alkstore_jobs", "alkstore_inline"}
# What the loggers, and the records that a task writes, are called.
LOGGERS = {"django_alkstore.job"}

# The names by which examples call an object -> what it may be.
CALLED: dict[str, list[Any]] = {
    "context": [context.Context],
    "result": [results.TaskResult],
    "job": [jobs.ClaimedJob, jobs.JobSnapshot, *MODELS],
    "attempt": [jobs.AttemptSnapshot],
    "claimed": [jobs.ClaimedJob],
    "emails": [Queue],
    "thumbnails": [Queue],
    "send_receipt": [Task],
}
MANAGERS = [model._default_manager for model in MODELS]

by_page = pytest.mark.parametrize("each", all_pages(), ids=str)


@by_page
def test_dotted_names_and_checks_exist(each: Page) -> None:
    checks = page("reference/checks.md").sections[1].keys

    for path in re.findall(r"`(django_alkstore(?:\.\w+)+)`", each.text):
        assert path in checks or path in LOGGERS or _exists(path), path


@by_page
def test_tables_exist(each: Page) -> None:
    assert set(re.findall(r"__alkstore_\w+", each.text)) <= TABLES


@by_page
def test_commands_and_their_options_exist(each: Page) -> None:
    kinds = "live|dead|results|attempts|workers"
    flags = {flag for name in COMMANDS for flag in flags_of(name, all_of_them=True)}

    named = set(re.findall(rf"\balkstore_(?!(?:{kinds})_)\w+", each.text))

    assert named <= {*COMMANDS, *FIXTURES}
    for command, words in re.findall(r"(alkstore_\w+)((?: +[^\s`|]+)*)", each.text):
        for flag in re.findall(r"--[\w-]+", words):
            assert flag in flags_of(command, all_of_them=True), f"{command} {flag}"
    for flag in re.findall(r"`(--[a-z-]+)", each.text):
        assert flag in flags, flag


@by_page
def test_signals_exist(each: Page) -> None:
    known = {name for name in vars(signals) if name.startswith("job_")}
    known |= set(re.findall(r"job_\w+", inspect.getsource(context)))
    known |= {"job_id"}

    assert set(re.findall(r"`(job_\w+)`", each.text)) <= known


@by_page
def test_settings_exist(each: Page) -> None:
    assert set(re.findall(r'ALKSTORE\["(\w+)"\]', each.text)) <= {*conf.SETTING_NAMES}
    assert set(re.findall(r'RETENTION\["(\w+)"\]', each.text)) <= {
        *conf.Retention.__dataclass_fields__
    }
    for block in each.blocks:
        if block.language == "python":
            _check_settings(ast.parse(block.text.lstrip()))


@by_page
def test_members_exist(each: Page) -> None:
    text = re.sub(r"\]\([^)]*\)", "", each.text)
    for owner, name in re.findall(r"(?<![\w.])(\w+)\.([a-z]\w*)", text):
        known = CALLED.get(owner)
        assert not known or any(_has(each, name) for each in known), f"{owner}.{name}"
    for name in re.findall(r"\bobjects\.(\w+)", text):
        assert any(hasattr(manager, name) for manager in MANAGERS), name


def _has(thing: Any, name: str) -> bool:
    return hasattr(thing, name) or name in {
        *getattr(thing, "__annotations__", {}),
        # Some are only set in __init__.
        *re.findall(r"self\.(\w+)", inspect.getsource(thing)),
    }


def _check_settings(tree: ast.Module) -> None:
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and node.targets[0].id == "ALKSTORE"
        ):
            value = eval(compile(ast.Expression(node.value), "ALKSTORE", "eval"))
            assert not conf._convert(value, conf._CONVERTERS, "ALKSTORE")[1]


def _exists(path: str) -> bool:
    for find in (import_module, import_string):
        try:
            find(path)
        except ImportError:
            continue
        return True
    return False
