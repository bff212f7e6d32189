"""The pages of docs/ as the tests read them: their code, links, headings and tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"

FENCE = re.compile(r"^(\s*)```(.*)$")
HEADING = re.compile(r"^(#{1,6}) (.+)$")
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the words after it, its text and its line."""

    language: str
    marks: tuple[str, ...]
    text: str
    line: int


@dataclass
class Section:
    """What stands under one heading: prose and table rows; code blocks are left out."""

    title: str
    lines: list[str] = field(default_factory=list)

    @property
    def code(self) -> set[str]:
        """Every code span of the section."""
        return {span for line in self.lines for span in CODE.findall(line)}

    @property
    def names(self) -> set[str]:
        """Every identifier in its code spans."""
        return {name for span in self.code for name in re.findall(r"\w+", span)}

    @property
    def rows(self) -> list[list[str]]:
        """The rows of its tables, without the heads."""
        rows: list[list[str]] = []
        head: list[list[str]] = []
        for line in self.lines:
            if not line.startswith("|"):
                head = []
                continue
            cells = [cell.strip() for cell in line.strip().strip("|").split(" |")]
            cells = [cell.lstrip("|").strip() for cell in cells]
            if len(head) < 2:
                head.append(cells)
            else:
                rows.append(cells)
        return rows

    @property
    def keys(self) -> list[str]:
        """The code spans in the first cells of its tables."""
        return [span for row in self.rows for span in CODE.findall(row[0])]


@dataclass(frozen=True)
class Page:
    """One Markdown file."""

    path: Path

    def __str__(self) -> str:
        return str(self.path.relative_to(ROOT))

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def blocks(self) -> list[Block]:
        """The fenced blocks, in order."""
        return list(self._blocks())

    def _blocks(self) -> Iterator[Block]:
        opened: tuple[str, int] | None = None
        lines: list[str] = []
        for number, line in enumerate(self.text.splitlines(), 1):
            fence = FENCE.match(line)
            if fence is None:
                lines.append(line)
            elif opened is None:
                opened, lines = (fence[2].strip(), number), []
            else:
                language, _, marks = opened[0].partition(" ")
                text = "\n".join(lines) + "\n"
                yield Block(language, tuple(marks.split()), text, opened[1])
                opened = None
        assert opened is None, f"{self}: a block is not closed"

    @cached_property
    def prose(self) -> list[str]:
        """The lines outside fenced blocks."""
        lines, inside = [], False
        for line in self.text.splitlines():
            if FENCE.match(line):
                inside = not inside
            elif not inside:
                lines.append(line)
        return lines

    @cached_property
    def sections(self) -> list[Section]:
        """The page cut at its headings; the first section may have no title."""
        sections = [Section("")]
        for line in self.prose:
            if heading := HEADING.match(line):
                sections.append(Section(heading[2]))
            else:
                sections[-1].lines.append(line)
        return sections

    def section(self, title: str) -> Section:
        """Return the section with a title."""
        [found] = [section for section in self.sections if section.title == title]
        return found

    @cached_property
    def whole(self) -> Section:
        """The page as one section."""
        return Section("", self.prose)

    @cached_property
    def anchors(self) -> set[str]:
        """The anchors that a Markdown reader makes of the headings."""
        anchors: set[str] = set()
        for section in self.sections:
            title = re.sub(r"[^\w\- ]", "", section.title.replace("`", "").lower())
            slug = title.replace(" ", "-")
            count = 1
            while slug in anchors:
                slug = f"{title.replace(' ', '-')}-{count}"
                count += 1
            anchors.add(slug)
        return anchors

    @property
    def links(self) -> list[str]:
        """The targets of its links and images."""
        return [target for line in self.prose for target in LINK.findall(line)]


@lru_cache
def page(name: str) -> Page:
    """Return a page by its path below docs/."""
    return Page(DOCS / name)


def all_pages() -> list[Page]:
    """Return every page of docs/, and the README."""
    paths = [*sorted(DOCS.rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    return [Page(path) for path in paths]
