"""The set-up that needs nothing but Python."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from example_project import bootstrap

FIRST_READ = [
    "example_project/bootstrap.py",
    "tests/__init__.py",
    "tests/__main__.py",
    "example_project/__init__.py",
    "example_project/__main__.py",
]


@pytest.fixture(autouse=True)
def no_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests may run in an environment that these variables chose."""
    monkeypatch.delenv("ALKSTORE_VENV", raising=False)
    monkeypatch.delenv("ALKSTORE_DJANGO", raising=False)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Where an environment is to be made."""
    return tmp_path / "venv"


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that would have been run; each is taken for a success."""
    ran: list[list[str]] = []

    def run(command: list[str]) -> bool:
        ran.append(command)
        if command[1:3] == ["-m", "venv"]:
            pretend_python(Path(command[3]))
        return True

    monkeypatch.setattr(bootstrap, "runs", run)
    monkeypatch.setattr(bootstrap, "succeeds", run)
    return ran


def pretend_python(home: Path) -> None:
    python = bootstrap.python_of(home)
    python.parent.mkdir(parents=True, exist_ok=True)
    python.write_text("#!/bin/sh\n")
    python.chmod(0o755)
    (home / "pyvenv.cfg").touch()


def failing(*words: str) -> Callable[[list[str]], bool]:
    """Return a runner for which commands with any of these words fail."""

    def run(command: list[str]) -> bool:
        if set(words).intersection(command):
            return False
        if command[1:3] == ["-m", "venv"]:
            pretend_python(Path(command[3]))
        return True

    return run


def test_a_second_run_finds_the_work_done(
    home: Path, commands: list[list[str]]
) -> None:
    assert bootstrap.make(home)
    commands.clear()

    assert not bootstrap.make(home)

    assert commands == []


def test_another_project_file_or_django_installs_again(
    home: Path, commands: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    bootstrap.make(home)
    commands.clear()
    monkeypatch.setenv("ALKSTORE_DJANGO", "6.0.*")

    assert bootstrap.make(home)

    assert commands[-1][-1] == "Django==6.0.*"
    assert not any("venv" in command for command in commands)


def test_an_interrupted_run_is_begun_afresh(
    home: Path, commands: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bootstrap, "runs", failing("install"))
    with pytest.raises(SystemExit):
        bootstrap.make(home)
    leftover = home / "leftover"
    leftover.touch()
    monkeypatch.setattr(bootstrap, "runs", failing())

    assert bootstrap.make(home)

    assert not leftover.exists()
    assert bootstrap.is_current(home, bootstrap.stamp())


def test_an_environment_made_by_hand_is_kept(
    home: Path, commands: list[list[str]]
) -> None:
    pretend_python(home)
    (home / "precious").touch()

    assert bootstrap.make(home)

    assert (home / "precious").exists()


def test_a_folder_that_is_no_environment_is_left_alone(
    home: Path, commands: list[list[str]]
) -> None:
    home.mkdir()
    (home / "precious").touch()

    with pytest.raises(SystemExit, match="is no virtual environment"):
        bootstrap.make(home)

    assert (home / "precious").exists()


def test_without_ensurepip_any_pip_is_brought_in(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    brought: list[Path] = []
    bare = str(bootstrap.python_of(home))

    def succeeds(command: list[str]) -> bool:
        if command[0] == bare or command[-1] == str(home):
            return False
        return failing()(command)

    monkeypatch.setattr(bootstrap, "succeeds", succeeds)
    monkeypatch.setattr(bootstrap, "runs", failing())
    monkeypatch.setattr(bootstrap, "bring_pip", brought.append)

    assert bootstrap.make(home)

    assert brought == [bootstrap.python_of(home)]


@pytest.mark.parametrize("missing", ["venv", "pip"])
def test_no_way_to_make_one_is_a_line_that_names_the_package(
    home: Path, missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bootstrap, "succeeds", failing(missing, "--version"))
    monkeypatch.setattr("shutil.which", lambda name: None)

    with pytest.raises(SystemExit) as stopped:
        bootstrap.make(home)

    assert "python3-venv" in str(stopped.value)
    assert "\n" not in str(stopped.value)


def test_an_old_python_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 4, "final", 0))

    with pytest.raises(SystemExit) as stopped:
        bootstrap.enter("tests")

    assert "3.11 or newer" in str(stopped.value)
    assert "\n" not in str(stopped.value)


@pytest.mark.parametrize("name", FIRST_READ)
def test_an_old_python_can_read_what_comes_first(name: str) -> None:
    source = (bootstrap.ROOT / name).read_text(encoding="utf-8")

    tree = ast.parse(source, feature_version=(3, 6))

    froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert "__future__" not in {node.module for node in froms}


def test_the_packages_need_the_standard_library_alone() -> None:
    code = (
        "import sys, tests, example_project; sys.exit('django' in sys.modules"
        " or 'site-packages' in str(sys.path))"
    )

    done = subprocess.run([sys.executable, "-S", "-c", code], cwd=bootstrap.ROOT)

    assert done.returncode == 0
