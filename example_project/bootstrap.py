"""
Make this checkout's virtual environment, and go on inside it.

``python3 -m tests`` and ``python3 -m example_project`` both begin here, with nothing
installed but Python. Two environment variables choose another environment:

``ALKSTORE_VENV``     its folder (``.venv`` in the checkout)
``ALKSTORE_DJANGO``   the Django release in it, such as ``6.0.*`` (the newest)

``python3 -m example_project.bootstrap`` only makes it, and prints the path of its
Python.
"""

# Whatever runs before the version is checked must parse on Python 3.6, so that an old
# Python gets as far as saying so: neither a __future__ import of annotations nor newer
# syntax here, in the two packages' __init__ and in their __main__.
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STAMP = ".alkstore-installed"
UNFINISHED = ".alkstore-unfinished"
DEBIAN = "on Debian and Ubuntu the package python3-venv brings it"


def enter(module: str) -> None:
    """
    Return inside the environment, or start ``python -m module`` over again in it.

    The environment is made when it is not there and installed into when pyproject.toml
    has changed; otherwise this costs a few milliseconds. Stop with one line when Python
    is too old or there is no way to make an environment.
    """
    if sys.version_info < (3, 11):
        sys.exit(
            "django_alkstore needs Python 3.11 or newer; %s is Python %d.%d."
            % (sys.executable, sys.version_info[0], sys.version_info[1])
        )
    home = folder()
    changed = make(home)
    if Path(sys.prefix).resolve() == home and not changed:
        return
    # PYTHONHOME would have the environment's Python look for its packages elsewhere.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONHOME"}
    sys.stdout.flush()
    sys.stderr.flush()
    python = str(python_of(home))
    os.execve(python, [python, "-m", module] + sys.argv[1:], environment)


def folder() -> Path:
    """Return where the environment is or will be."""
    return Path(os.environ.get("ALKSTORE_VENV") or ROOT / ".venv").resolve()


def python_of(home: Path) -> Path:
    """Return the path of the environment's Python."""
    return home / "bin" / "python"


def make(home: Path) -> bool:
    """Make the environment, or bring it up to date. Return whether there was work."""
    wanted = stamp()
    if is_current(home, wanted):
        return False
    # Two commands started at once in a fresh checkout take turns, and the second finds
    # the work done. The kernel drops the lock with the process, however it ends.
    lock = os.open(str(ROOT), os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if is_current(home, wanted):
            return False
        install(home, wanted)
    finally:
        os.close(lock)
    return True


def stamp() -> str:
    """Return the text that a finished environment carries."""
    project = hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()
    django = os.environ.get("ALKSTORE_DJANGO", "")
    # The place too: the project is installed by reference, so a moved copy is stale.
    return "pyproject.toml %s\nDjango %s\nin %s\n" % (project, django, ROOT)


def is_current(home: Path, wanted: str) -> bool:
    """Tell whether the environment is whole, and installed from what is here now."""
    try:
        found = (home / STAMP).read_text(encoding="utf-8")
    except OSError:
        return False
    return found == wanted and works(home)


def works(home: Path) -> bool:
    """Tell whether there is a Python; its link dangles once its release is removed."""
    return os.access(str(python_of(home)), os.X_OK)


def install(home: Path, wanted: str) -> None:
    """Make the environment unless it works, install the project, and stamp it."""
    unfinished = home / UNFINISHED
    # One without either file was made by hand: it is installed into, never wiped.
    if unfinished.exists() or not works(home):
        wipe(home)
        home.mkdir(parents=True, exist_ok=True)
        unfinished.touch()
        say("Making the environment %s ..." % home)
        create(home)
    unfinished.touch()
    (home / STAMP).unlink(missing_ok=True)
    say("Installing django_alkstore and its tools; a minute the first time ...")
    pip = [str(python_of(home)), "-m", "pip"]
    if not succeeds(pip + ["--version"]):
        bring_pip(python_of(home))
    django = os.environ.get("ALKSTORE_DJANGO")
    wanted_django = ["Django==" + django] if django else []
    command = pip + ["install", "-qq", "--no-input", "--disable-pip-version-check"]
    if not runs(command + ["-e", ".[dev,postgresql]"] + wanted_django):
        sys.exit("The installation failed; what pip said is above.")
    # The stamp is the last thing written, and appears whole or not at all.
    written = home / (STAMP + ".new")
    written.write_text(wanted, encoding="utf-8")
    written.replace(home / STAMP)
    unfinished.unlink()


def wipe(home: Path) -> None:
    """Remove what an interrupted run left, and refuse to remove anything else."""
    if not home.exists():
        return
    ours = (home / UNFINISHED).exists() or (home / "pyvenv.cfg").exists()
    if not ours and any(home.iterdir()):
        sys.exit("%s is no virtual environment; it is left as it is." % home)
    shutil.rmtree(str(home))


def create(home: Path) -> None:
    """Make an environment, without pip where Python has none to put into it."""
    command = [base_python(), "-m", "venv", str(home)]
    if succeeds(command) or succeeds(command + ["--without-pip"]):
        return
    sys.exit("This Python cannot make a virtual environment (venv): %s." % DEBIAN)


def bring_pip(python: Path) -> None:
    """Put pip into an environment that has none, with any other pip there is."""
    found = [[base_python(), "-m", "pip"]]
    found += [[path] for path in map(shutil.which, ("pip3", "pip")) if path]
    pips = [command for command in found if succeeds(command + ["--version"])]
    if not pips:
        sys.exit("This Python has no pip, and there is no other one: %s." % DEBIAN)
    # Told which Python it is for: the pip that is found may belong to an older one, and
    # be too old itself to run on this one.
    asked = "from sysconfig import *; print(get_python_version(), get_path('purelib'))"
    answer = subprocess.check_output([str(python), "-c", asked], encoding="utf-8")
    release, target = answer.strip().split(" ", 1)
    arguments = ["install", "-qq", "--no-input", "--disable-pip-version-check"]
    arguments += ["--target", target, "--python-version", release]
    arguments += ["--only-binary", ":all:", "pip"]
    if not any(runs(command + arguments) for command in pips):
        sys.exit("The environment has no pip; what others said is above. %s." % DEBIAN)


def base_python() -> str:
    """Return the Python that is running, not an environment's that may be wiped."""
    return getattr(sys, "_base_executable", None) or sys.executable


def runs(command: "list[str]") -> bool:
    """Run a command in the checkout, and tell whether it exited 0."""
    # An environment refuses the --user that may be somebody's default.
    environment = dict(os.environ, PIP_USER="0")
    return subprocess.call(command, cwd=str(ROOT), env=environment) == 0


def succeeds(command: "list[str]") -> bool:
    """Tell whether a command can be run and exits 0, without a word from it."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    except OSError:
        return False
    return done.returncode == 0


def say(text: str) -> None:
    """Tell what takes time, apart from what the command itself prints."""
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    enter("example_project.bootstrap")
    print(python_of(folder()))
