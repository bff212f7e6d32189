"""
The tutorial, done as it says: files written, commands run, each output compared.

The words after a block's language tell what to do with it: ``file=``, ``append=`` and
``replace=`` (the function of the same name) write code, ``run`` runs commands,
``shell`` is typed into a Python shell, ``worker`` starts a worker or waits for its next
lines, ``stop`` and ``kill`` end it.
"""

from __future__ import annotations

import ast
import os
import re
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pages import ROOT, Block, page
from tests.waiting import wait_until

pytestmark = pytest.mark.sqlite_only

# What differs from run to run.
VARYING = [
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}", "TIME"),
    (r"seconds=[\d.]+", "seconds=S"),
    (r"worker=\S+", "worker=W"),
]

# What the reader's shell does with a block: a process that prints what differs.
SHELL = """
import doctest, re, sys
import django
django.setup()
class Checker(doctest.OutputChecker):
    def check_output(self, want, got, flags):
        if re.fullmatch(r"\\d{4,}\\n", want):
            return re.fullmatch(r"\\d+\\n", got) is not None
        return super().check_output(want, got, flags)
from shop.models import Message, Order
test = doctest.DocTestParser().get_doctest(
    sys.stdin.read(), {"Message": Message, "Order": Order}, "shell", None, 0
)
runner = doctest.DocTestRunner(Checker(), False, doctest.ELLIPSIS)
sys.exit(runner.run(test, clear_globs=False).failed)
"""


class Reader:
    """Somebody who does what the tutorial says, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "worker.log"
        self.seen = 0
        self.worker: subprocess.Popen[bytes] | None = None
        # What was typed into the shell so far; a later block goes on from there.
        self.typed = ""
        self.environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "mysite.settings",
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": f"{folder}:{ROOT}",
            "PYTHONUNBUFFERED": "1",
        }

    def do(self, block: Block) -> None:
        for mark in block.marks:
            name, _, target = mark.partition("=")
            getattr(self, f"do_{name}")(block.text, target)

    def do_file(self, text: str, target: str) -> None:
        (self.folder / target).write_text(text)

    def do_append(self, text: str, target: str) -> None:
        with (self.folder / target).open("a") as file:
            file.write(f"\n\n{text}")

    def do_replace(self, text: str, target: str) -> None:
        path = self.folder / target
        old = path.read_text()
        [new] = ast.parse(text).body
        [function] = [
            node
            for node in ast.parse(old).body
            if isinstance(node, ast.FunctionDef)
            and isinstance(new, ast.FunctionDef)
            and node.name == new.name
        ]
        lines = old.splitlines(keepends=True)
        first = function.decorator_list[0].lineno - 1
        path.write_text("".join([*lines[:first], text, *lines[function.end_lineno :]]))

    def do_run(self, text: str, target: str) -> None:
        for command, output in commands(text):
            assert self.output_of(command) == output

    def do_shell(self, text: str, target: str) -> None:
        result = subprocess.run(
            [sys.executable, "-c", SHELL],
            input=imports(self.typed) + text,
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
        )
        self.typed += text
        assert result.returncode == 0, result.stdout + result.stderr

    def do_worker(self, text: str, target: str) -> None:
        output = masked(text)
        if text.startswith("$ "):
            [(command, output)] = commands(text)
            self.seen = 0
            with self.log.open("wb") as log:
                self.worker = subprocess.Popen(
                    command.split(), cwd=self.folder, env=self.environment,
                    stdout=log, stderr=subprocess.STDOUT,
                )  # fmt: skip
        self.expect(output)

    def do_stop(self, text: str, target: str) -> None:
        assert self.worker is not None
        self.worker.send_signal(signal.SIGINT)

        assert self.worker.wait(20) == 0
        self.expect(masked(text))

    def do_kill(self, text: str, target: str) -> None:
        assert self.worker is not None
        self.worker.kill()
        self.worker.wait()

    def expect(self, output: list[str]) -> None:
        """Wait until the worker's next lines are these."""
        end = self.seen + len(output)
        wait_until(lambda: len(masked(self.log.read_text())) >= end, 20)
        assert masked(self.log.read_text())[self.seen : end] == output
        self.seen = end

    def output_of(self, command: str) -> list[str]:
        result = subprocess.run(
            command.split(), cwd=self.folder, env=self.environment,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        return masked(result.stdout)


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    reader = Reader(tmp_path)
    try:
        yield reader
    finally:
        if reader.worker is not None and reader.worker.poll() is None:
            reader.worker.kill()
            reader.worker.wait()


def test_the_tutorial_does_what_it_says(reader: Reader) -> None:
    for block in page("tutorial/first-job.md").blocks:
        reader.do(block)


def commands(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the commands of a console block, each with the lines that it prints."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, masked(output)


def masked(text: str) -> list[str]:
    """Return lines with what varies taken out."""
    for pattern, word in VARYING:
        text = re.sub(pattern, word, text)
    return textwrap.dedent(text).splitlines()


def imports(typed: str) -> str:
    """Return the imports among lines typed before."""
    lines = typed.splitlines(keepends=True)
    return "".join(line for line in lines if re.match(r">>> (from|import) ", line))
