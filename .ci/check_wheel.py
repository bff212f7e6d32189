"""Build the wheel, and prove that it holds the package whole and nothing else."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ["pyproject.toml", "README.md", "LICENSE", "django_alkstore"]
NEEDED = ["django_alkstore/py.typed", "django_alkstore/migrations/0001_initial.py"]


def main() -> int:
    """Return 0, or 1 having said what the wheel lacks or has too much of."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tree = folder / "tree"
        copy_sources(tree)
        command = [sys.executable, "-m", "pip", "wheel", str(tree), "--no-deps"]
        command += ["-qq", "--wheel-dir", name]
        if subprocess.call(command, stdin=subprocess.DEVNULL):
            return 1
        [wheel] = folder.glob("*.whl")
        found = {name for name in zipfile.ZipFile(wheel).namelist()}
        meant = {
            path.relative_to(tree).as_posix()
            for path in (tree / "django_alkstore").rglob("*")
            if path.is_file()
        }
    packaged = {name for name in found if ".dist-info/" not in name}
    lacking = sorted(meant.union(NEEDED) - packaged)
    foreign = sorted(packaged - meant)
    for problem, names in (("lacks", lacking), ("should not have", foreign)):
        if names:
            print(f"{wheel.name} {problem} {', '.join(names)}")
    if lacking or foreign:
        return 1
    print(f"{wheel.name}: {len(packaged)} files, all that the package has")
    return 0


def copy_sources(tree: Path) -> None:
    """Copy what a wheel is built from: built in place, it would take in leftovers."""
    tree.mkdir()
    for name in SOURCES:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", ".*")
            shutil.copytree(ROOT / name, tree / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, tree / name)


if __name__ == "__main__":
    sys.exit(main())
