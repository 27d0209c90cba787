"""A stack's virtual environment: made when it is first asked for, from what is pinned."""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab.console import step
from lab.errors import LabError
from lab.experiments.old_stacks.stacks import FOLDER, Stack
from lab.paths import ROOT

# What installs the rest: pip and setuptools as old as the stacks.
BOOTSTRAP = FOLDER / "bootstrap.txt"
# Shared by all stacks that run from this clone: nothing in it is a running stack's.
ENVIRONMENTS = ROOT / ".lab/legacy"


def folder_of(stack: Stack) -> Path:
    """Where the environment is: another one when other things are pinned."""
    pinned = stack.python.encode() + BOOTSTRAP.read_bytes() + stack.requirements.read_bytes()
    digest = hashlib.sha256(pinned).hexdigest()[:12]
    return ENVIRONMENTS / f"{stack.name}-{digest}"


def is_made(stack: Stack) -> bool:
    """Whether the environment is there, and whole."""
    return _whole(folder_of(stack)).exists()


def make(stack: Stack) -> Path:
    """The environment of a stack, made unless it is there; its folder of programs.

    Raises:
        NotHere: this machine lacks what it is made with: Python, a compiler, a package index.
        LabError: it has them, and it could not be made: a hash that differs, code that does not
            compile.
    """
    folder = folder_of(stack)
    if is_made(stack):
        return folder / "bin"
    python = find_python(stack.python)
    if stack.compiler:
        check_compiler()
    with _alone(), step(f"Making the environment of {stack.title}, once (about half a minute)"):
        # Whoever held us up may have made it.
        if not is_made(stack):
            _make(stack, folder, python)
    return folder / "bin"


@contextmanager
def _alone() -> Iterator[None]:
    """Two that make the same environment at once would break it."""
    ENVIRONMENTS.mkdir(parents=True, exist_ok=True)
    with (ENVIRONMENTS / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def run(argv: list[str], stack: Stack, env: dict[str, str]) -> None:
    """Run one of the stack's own commands in its project.

    Raises:
        LabError: it failed; with the end of what it said.
    """
    done = subprocess.run(
        argv, cwd=stack.project_folder, env=env, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise LabError(f"`{' '.join(argv)}` of {stack.name} failed:\n{_end(done)}")


def _make(stack: Stack, folder: Path, python: Path) -> None:
    # What an earlier try left is of no use.
    shutil.rmtree(folder, ignore_errors=True)
    _install([str(python), "-m", "venv", str(folder)], stack)
    pip = [str(folder / "bin/python"), "-m", "pip", "install", "--quiet"]
    pip += ["--disable-pip-version-check", "--require-hashes"]
    _install([*pip, "-r", str(BOOTSTRAP)], stack)
    # With the setuptools that is pinned, not with the newest.
    _install([*pip, "--no-build-isolation", "-r", str(stack.requirements)], stack)
    _whole(folder).touch()


def _whole(folder: Path) -> Path:
    """Stands there once everything is installed."""
    return folder / "complete"


def _install(argv: list[str], stack: Stack) -> None:
    # A PYTHONPATH of ours is for another Python.
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        said = f"`{' '.join(argv[:4])} …` ended with {done.returncode}:\n{_end(done)}"
        what = f"The environment of {stack.name} could not be made"
        if is_unreachable(done.stdout + done.stderr):
            raise NotHere(f"{what}; it needs the package index, this once. {said}")
        raise LabError(f"{what}. {said}")


def _end(done: "subprocess.CompletedProcess[str]") -> str:
    return "\n".join((done.stdout + done.stderr).strip().splitlines()[-12:])


class NotHere(LabError):
    """This machine lacks what an old stack needs: its cells are not measured, the rest is."""


def find_python(version: str) -> Path:
    """A Python `version` (such as 3.8) that runs: on the PATH, or among pyenv's.

    Raises:
        NotHere: there is none; with where it was looked for.
    """
    looked = list(dict.fromkeys(_candidates(version)))
    for candidate in looked:
        if _runs(candidate, version):
            return candidate
    found = f"; {', '.join(map(str, looked))} does not run" if looked else ""
    raise NotHere(
        f"Python {version} is not here: no python{version} on the PATH and none in "
        f"{_pyenv_folder()}{found}. Get it, for example with: pyenv install {version}"
    )


def check_compiler() -> None:
    """Raises:
    NotHere: there is no C compiler.
    """
    if shutil.which("cc") is None and shutil.which("gcc") is None:
        raise NotHere(
            "A C compiler is not here (cc, gcc): some packages come as source. Get it, for example "
            "with: apt-get install gcc libc6-dev"
        )


def _candidates(version: str) -> Iterator[Path]:
    on_path = shutil.which(f"python{version}")
    if on_path:
        yield Path(on_path)
    # Newest first: 3.8.20 before 3.8.9.
    kept = _pyenv_folder().glob(f"{version}.*/bin/python{version}")
    yield from sorted(kept, key=lambda path: _numbers(path.parent.parent.name), reverse=True)


def _pyenv_folder() -> Path:
    return Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"


def _numbers(name: str) -> tuple[int, ...]:
    return tuple(int(part) for part in name.split(".") if part.isdigit())


def _runs(python: Path, version: str) -> bool:
    """Whether it is more than a name: pyenv's shims are there for versions that are not chosen."""
    code = "import ensurepip, ssl, venv, sys; print('%d.%d' % sys.version_info[:2])"
    try:
        said = subprocess.run(
            [str(python), "-c", code], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return said.stdout.strip() == version


# As pip, Docker and the resolver say it. A package or an image that is there and wrong says other
# things: a hash that differs, a compiler's error.
_UNREACHABLE = re.compile(
    r"connection broken by|newconnectionerror|connecttimeouterror|readtimeouterror|proxyerror|"
    r"could not fetch url|read timed out|failed to establish a new connection|"
    r"name resolution|name or service not known|no such host|network is unreachable|"
    r"connection (refused|reset|timed out)|i/o timeout|handshake timeout|dial tcp|"
    r"failed to (do request|resolve source metadata)|request canceled|"
    r"pull access denied|manifest (unknown|for .* not found)",
    re.IGNORECASE,
)


def is_unreachable(said: str) -> bool:
    """Whether what a program `said` when it failed is that it could reach nobody."""
    return _UNREACHABLE.search(said) is not None
