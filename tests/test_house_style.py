"""
The house rules that a machine can check; this stands in for a linter.

Each rule is also shown code that breaks it, so that none of them sleeps.
"""

from __future__ import annotations

import ast
import inspect
import io
import re
import tokenize
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import TypeAlias, TypeVar

import pytest

import django_alkstore

PACKAGE = Path(django_alkstore.__file__).parent
LONGEST = 350
# Where the engines may be told apart, and their language spoken.
ENGINE_FOLDERS = {"sql", "wake", "migrations"}
SQL = re.compile(
    r"\s*(SELECT|INSERT|UPDATE|DELETE|WITH|CREATE|ALTER|DROP|PRAGMA|BEGIN|LISTEN|NOTIFY"
    r"|SET|VACUUM|TRUNCATE|LOCK)\s"
)
IGNORE = re.compile(r"#\s*type:\s*ignore(?P<code>\[[\w, -]+\])?(?P<reason>.*)")
HOOKS = {"from_db_value", "as_sqlite", "as_postgresql"}
BROAD = {"Exception", "BaseException"}
TEXT_TESTS = {"startswith", "endswith", "find", "index", "search", "match", "fullmatch"}

Found: TypeAlias = Iterator[tuple[int, str]]
Rule: TypeAlias = Callable[[str, ast.Module], Found]
NodeT = TypeVar("NodeT", bound=ast.AST)


def messages_that_decide(source: str, tree: ast.Module) -> Found:
    """An error's type or SQLSTATE says what it is; its text is for people."""
    for handler in _all(tree, ast.ExceptHandler):
        name = handler.name or ""
        for compare in _all(handler, ast.Compare):
            if any(
                _is_text(each, name) for each in (compare.left, *compare.comparators)
            ):
                yield compare.lineno, f"decides by the text of {name}"
        for call in _all(handler, ast.Call):
            if isinstance(call.func, ast.Attribute) and call.func.attr in TEXT_TESTS:
                if any(_is_text(each, name) for each in (call.func.value, *call.args)):
                    yield call.lineno, f"decides by the text of {name}"


def swallowed_errors(source: str, tree: ast.Module) -> Found:
    """An error of any kind is not passed over in silence."""
    for handler in _all(tree, ast.ExceptHandler):
        kind = handler.type
        broad = kind is None or (isinstance(kind, ast.Name) and kind.id in BROAD)
        if broad and all(
            isinstance(node, (ast.Pass, ast.Continue)) for node in handler.body
        ):
            yield handler.lineno, "passes over any error"


def prints(source: str, tree: ast.Module) -> Found:
    """A library logs; a command writes to its own stdout."""
    for call in _all(tree, ast.Call):
        if isinstance(call.func, ast.Name) and call.func.id == "print":
            yield call.lineno, "prints"


def bare_ignores(source: str, tree: ast.Module) -> Found:
    """A type error that is ignored says which, and why."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        found = token.type == tokenize.COMMENT and IGNORE.search(token.string)
        if found and not (found["code"] and found["reason"].strip(" #")):
            yield token.start[0], "ignores a type error without its code and the reason"


def open_ends(source: str, tree: ast.Module) -> Found:
    """What is still to be done is an issue, not a comment."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and re.search("TODO|FIXME|XXX", token.string):
            yield token.start[0], "leaves something to be done"


def annotations_that_run(source: str, tree: ast.Module) -> Found:
    """Generic models and tasks cannot be subscripted at run time."""
    future = "from __future__ import annotations"
    annotated = bool(_all(tree, ast.AnnAssign)) or bool(_all(tree, ast.arg))
    if annotated and future not in source:
        yield 1, f"lacks {future}"


def sql_elsewhere(source: str, tree: ast.Module) -> Found:
    """SQL has one home for each engine."""
    docstrings = set(_docstrings(tree))
    for text in _all(tree, ast.Constant):
        if (
            isinstance(text.value, str)
            and text not in docstrings
            and SQL.match(text.value)
        ):
            yield text.lineno, "speaks SQL"


def vendors_elsewhere(source: str, tree: ast.Module) -> Found:
    """Which engine it is matters to the SQL alone."""
    for attribute in _all(tree, ast.Attribute):
        if attribute.attr == "vendor":
            yield attribute.lineno, "asks for the engine"


RULES: list[Rule] = [
    messages_that_decide,
    swallowed_errors,
    prints,
    bare_ignores,
    open_ends,
    annotations_that_run,
]
SPOKEN_IN_FEW_PLACES: list[Rule] = [sql_elsewhere, vendors_elsewhere]
BROKEN: list[tuple[Rule, str]] = [
    (messages_that_decide, "try: f()\nexcept E as e:\n  if 'locked' in str(e): g()"),
    (messages_that_decide, "try: f()\nexcept E as e:\n  e.args[0].startswith('x')"),
    (messages_that_decide, "try: f()\nexcept E as e:\n  re.search('x', f'{e}')"),
    (swallowed_errors, "try: f()\nexcept Exception: pass"),
    (swallowed_errors, "for x in y:\n  try: f()\n  except: continue"),
    (prints, "print(1)"),
    (bare_ignores, "f()  # type: " + "ignore"),
    (bare_ignores, "f()  # type: " + "ignore[misc]"),
    (open_ends, "f()  # TO" + "DO: more"),
    (annotations_that_run, "def f(x: Task[int]) -> None: ..."),
    (sql_elsewhere, "run(f'SELECT {x} FROM y')"),
    (vendors_elsewhere, "connection.vendor == 'sqlite'"),
]
MODULES = sorted(PACKAGE.rglob("*.py"))


def _name(value: object) -> str:
    if isinstance(value, Path):
        return value.relative_to(PACKAGE.parent).as_posix()
    return str(getattr(value, "__name__", ""))


@pytest.mark.parametrize("rule", [*RULES, *SPOKEN_IN_FEW_PLACES], ids=_name)
def test_the_package_keeps_the_rule(rule: Rule) -> None:
    found = []
    for path in MODULES:
        parts = path.relative_to(PACKAGE).parts
        if rule in SPOKEN_IN_FEW_PLACES and parts[0] in ENGINE_FOLDERS:
            continue
        if "migrations" in parts:  # written by Django
            continue
        source = path.read_text(encoding="utf-8")
        found += [
            f"{_name(path)}:{line} {what}"
            for line, what in rule(source, ast.parse(source))
        ]

    assert not found


@pytest.mark.parametrize(("rule", "source"), BROKEN, ids=_name)
def test_the_rule_finds_what_breaks_it(rule: Rule, source: str) -> None:
    assert list(rule(source, ast.parse(source)))


def test_no_file_is_too_long_to_be_read_at_once() -> None:
    tests = Path(__file__).parent.rglob("*.py")

    too_long = {
        path.name: lines
        for path in [*MODULES, *tests]
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > LONGEST
    }

    assert not too_long


def test_each_module_class_and_public_function_is_described() -> None:
    undescribed = [
        f"{_name(path)} {name}"
        for path in MODULES
        if "migrations" not in path.parts
        for name in _undescribed(path)
    ]

    assert not undescribed


def _undescribed(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    if tree.body and not ast.get_docstring(tree):
        yield "the module"
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and _is_public(node.name):
            yield from _undescribed_class(path, node)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if _is_public(node.name) and not _is_described(node):
                yield node.name


def _undescribed_class(path: Path, node: ast.ClassDef) -> Iterator[str]:
    if not ast.get_docstring(node):
        yield node.name
    kind = getattr(import_module(_module(path)), node.name)
    for method in node.body:
        if not isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        if not _is_public(method.name) or _is_described(method):
            continue
        # What Django calls, or a base class has, is described there.
        bases = inspect.getmro(kind)[1:]
        if method.name in HOOKS or any(hasattr(base, method.name) for base in bases):
            continue
        yield f"{node.name}.{method.name}"


def _is_described(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    if ast.get_docstring(node):
        return True
    # An overload is described where it is implemented, a short property by its name.
    names = {
        getattr(each, "id", getattr(each, "attr", "")) for each in node.decorator_list
    }
    return "overload" in names or ("property" in names and len(node.body) == 1)


def _is_public(name: str) -> bool:
    return not name.startswith("_")


def _module(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


def _all(tree: ast.AST, kind: type[NodeT]) -> list[NodeT]:
    return [node for node in ast.walk(tree) if isinstance(node, kind)]


def _is_text(node: ast.AST, error: str) -> bool:
    """Whether an expression is the text of the caught error."""
    for part in ast.walk(node):
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Name):
            if part.func.id in ("str", "repr") and _names(part.args, error):
                return True
        if isinstance(part, ast.FormattedValue) and _names([part.value], error):
            return True
        if isinstance(part, ast.Attribute) and part.attr in ("args", "message"):
            if _names([part.value], error):
                return True
    return False


def _names(nodes: Sequence[ast.AST], name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in nodes)


def _docstrings(tree: ast.Module) -> Iterator[ast.Constant]:
    # Also those below a field, which describe it.
    for expression in _all(tree, ast.Expr):
        if isinstance(expression.value, ast.Constant):
            yield expression.value
