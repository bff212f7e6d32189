"""The documentation: its links lead somewhere, and its code runs as it says."""

from __future__ import annotations

import ast
import doctest
import importlib
import re
import sys
import types
import unittest
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from django_alkstore.decorator import registry
from tests.pages import DOCS, Block, Page, all_pages

PAGES = all_pages()
RUN = [
    page
    for page in PAGES
    if any("run" in block.marks or block.language == "pycon" for block in page.blocks)
    and page.path.parent.name != "tutorial"  # tests/process/test_tutorial.py does it
]
TEST_CASES = [page for page in RUN if "(TestCase):" in page.text]
LANGUAGES = {"python", "pycon", "sql", "console", "ini", "text", "html", "yaml", "sh"}

by_page = pytest.mark.parametrize("page", PAGES, ids=str)


@by_page
def test_relative_links_and_anchors_resolve(page: Page) -> None:
    broken = [target for target in page.links if not _leads_somewhere(page, target)]

    assert not broken


def test_every_page_is_reached_from_the_index() -> None:
    reached: set[Path] = set()
    ahead = [DOCS / "index.md"]
    while ahead:
        path = ahead.pop()
        if path in reached or path.suffix != ".md" or not path.is_relative_to(DOCS):
            continue
        reached.add(path)
        ahead += [
            (path.parent / unquote(urlsplit(target).path)).resolve()
            for target in Page(path).links
            if not urlsplit(target).scheme and urlsplit(target).path
        ]

    assert set(DOCS.rglob("*.md")) == reached


@by_page
def test_fenced_blocks_name_a_known_language(page: Page) -> None:
    unknown = [block for block in page.blocks if block.language not in LANGUAGES]

    assert not unknown


@by_page
def test_a_page_has_one_title(page: Page) -> None:
    assert len([line for line in page.prose if line.startswith("# ")]) == 1


@by_page
def test_python_blocks_compile(page: Page) -> None:
    for source, place in _sources(page):
        compile(source, place, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, True)


@by_page
def test_what_python_blocks_import_is_there(page: Page) -> None:
    with _shop():
        for source, place in _sources(page):
            for node in ast.walk(ast.parse(source)):
                if isinstance(node, ast.ImportFrom) and node.module:
                    if not page.path.is_relative_to(DOCS) and "shop" in node.module:
                        continue  # the README's shop is anybody's
                    module = importlib.import_module(node.module)
                    for name in node.names:
                        assert _has(module, name.name), f"{place}: {name.name}"


@pytest.mark.django_db
@pytest.mark.parametrize("page", RUN, ids=str)
def test_examples_run_and_show_what_they_print(page: Page) -> None:
    said: list[str] = []

    with _shop(), _own_tasks():
        _run(page, said)

    assert not said, "".join(said)


# Django's own test cases begin and end their transactions, so no fixture may.
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("page", TEST_CASES, ids=str)
def test_test_cases_pass(page: Page) -> None:
    result = unittest.TestResult()

    with _shop(), _own_tasks():
        module = _run(page, [])
        cases = [
            case
            for case in vars(module).values()
            if isinstance(case, type) and case.__module__ == module.__name__
        ]
        load = unittest.defaultTestLoader.loadTestsFromTestCase
        unittest.TestSuite(map(load, cases)).run(result)

    assert result.testsRun
    problems = [text for _, text in [*result.failures, *result.errors]]
    assert not problems, "\n".join(problems)


def _run(page: Page, said: list[str]) -> types.ModuleType:
    """Run a page's examples one after the other, in one module."""
    module = types.ModuleType("shop.tasks")
    runner = doctest.DocTestRunner(
        verbose=False, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    )
    for block in page.blocks:
        place = f"{page}:{block.line}"
        if block.language == "python" and "run" in block.marks:
            exec(compile(block.text, place, "exec", 0, True), module.__dict__)
        elif block.language == "pycon":
            test = doctest.DocTestParser().get_doctest(
                block.text, module.__dict__, place, str(page), block.line
            )
            runner.run(test, out=said.append, clear_globs=False)
            module.__dict__.update(test.globs)
    return module


@contextmanager
def _own_tasks() -> Iterator[None]:
    """Forget, at the end, the tasks that were registered meanwhile."""
    known = dict(registry)
    try:
        yield
    finally:
        registry.clear()
        registry.update(known)


@contextmanager
def _shop() -> Iterator[None]:
    """Let the example's app be importable as a site's own, ``shop``."""
    names = ("", ".models", ".tasks")
    for name in names:
        module = importlib.import_module(f"example_project.shop{name}")
        sys.modules[f"shop{name}"] = module
    try:
        yield
    finally:
        for name in names:
            del sys.modules[f"shop{name}"]


def _leads_somewhere(page: Page, target: str) -> bool:
    parts = urlsplit(target)
    if parts.scheme:
        return parts.scheme == "https"
    path = (page.path.parent / unquote(parts.path)) if parts.path else page.path
    if not path.exists():
        return False
    return not parts.fragment or parts.fragment in Page(path.resolve()).anchors


def _sources(page: Page) -> Iterator[tuple[str, str]]:
    for block in page.blocks:
        place = f"{page}:{block.line}"
        if block.language == "python":
            yield _indented(block), place
        elif block.language == "pycon":
            for example in doctest.DocTestParser().get_examples(block.text):
                yield example.source, place


def _indented(block: Block) -> str:
    # A block may show lines out of the middle of a function.
    first = re.match(r" *", block.text)
    if first and first[0]:
        return "if True:\n" + block.text
    return block.text


def _has(module: Any, name: str) -> bool:
    if hasattr(module, name):
        return True
    try:
        importlib.import_module(f"{module.__name__}.{name}")
    except ImportError:
        return False
    return True
