"""Virtual environments of old stacks, created on first use from pinned packages."""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from load_lab.console import step
from load_lab.errors import LabError
from load_lab.experiments.legacy.stacks import FOLDER, Stack
from load_lab.paths import lab_file

# These install the rest: pip and setuptools of the stacks' time.
BOOTSTRAP = FOLDER / "bootstrap.txt"
# Shared by all stacks that run from this clone: it contains nothing of a running stack.
ENVIRONMENTS = lab_file(".lab/legacy")


def folder_of(stack: Stack) -> Path:
    """Return the folder of the environment, which changes with the pinned versions."""
    pins = stack.python.encode() + BOOTSTRAP.read_bytes() + stack.requirements.read_bytes()
    digest = hashlib.sha256(pins).hexdigest()[:12]
    return ENVIRONMENTS / f"{stack.name}-{digest}"


def is_complete(stack: Stack) -> bool:
    """Return whether the environment exists and is complete."""
    return _complete_file(folder_of(stack)).exists()


def make(stack: Stack) -> Path:
    """Create a stack's environment if it is missing. Return its folder of programs.

    Raises:
        MissingRequirement: this machine lacks Python, a compiler or a package index.
        LabError: the creation failed for another reason: a hash that differs, code that does not
            compile.
    """
    folder = folder_of(stack)
    if is_complete(stack):
        return folder / "bin"
    python = find_python(stack.python)
    if stack.compiler:
        check_compiler()
    with _lock(), step(f"Making the environment of {stack.title}, once (about half a minute)"):
        # Another process may have created it while this one waited.
        if not is_complete(stack):
            _make(stack, folder, python)
    return folder / "bin"


@contextmanager
def _lock() -> Iterator[None]:
    """Lock the environments: two processes must not create the same one at once."""
    ENVIRONMENTS.mkdir(parents=True, exist_ok=True)
    with (ENVIRONMENTS / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def run(argv: list[str], stack: Stack, env: dict[str, str]) -> None:
    """Run one of the stack's commands in its project.

    Raises:
        LabError: it failed; with the end of its output.
    """
    process = subprocess.run(
        argv, cwd=stack.project_folder, env=env, capture_output=True, text=True, check=False
    )
    if process.returncode:
        raise LabError(f"`{' '.join(argv)}` of {stack.name} failed:\n{_last_lines(process)}")


def _make(stack: Stack, folder: Path, python: Path) -> None:
    # Remove the remains of an earlier attempt.
    shutil.rmtree(folder, ignore_errors=True)
    _install([str(python), "-m", "venv", str(folder)], stack)
    pip = [str(folder / "bin/python"), "-m", "pip", "install", "--quiet"]
    pip += ["--disable-pip-version-check", "--require-hashes"]
    _install([*pip, "-r", str(BOOTSTRAP)], stack)
    # With the pinned setuptools, not with the newest.
    _install([*pip, "--no-build-isolation", "-r", str(stack.requirements)], stack)
    _complete_file(folder).touch()


def _complete_file(folder: Path) -> Path:
    """Return the file that exists once everything is installed."""
    return folder / "complete"


def _install(argv: list[str], stack: Stack) -> None:
    # The lab's PYTHONPATH is for another Python.
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    process = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    if process.returncode:
        details = (
            f"`{' '.join(argv[:4])} …` ended with {process.returncode}:\n{_last_lines(process)}"
        )
        message = f"The environment of {stack.name} could not be made"
        if is_unreachable(process.stdout + process.stderr):
            raise MissingRequirement(f"{message}; it needs the package index, this once. {details}")
        raise LabError(f"{message}. {details}")


def _last_lines(process: "subprocess.CompletedProcess[str]") -> str:
    return "\n".join((process.stdout + process.stderr).strip().splitlines()[-12:])


class MissingRequirement(LabError):
    """This machine lacks something that an old stack needs: only its cells are not measured."""


def find_python(version: str) -> Path:
    """Return a working Python `version` (such as 3.8), from the PATH or from pyenv.

    Raises:
        MissingRequirement: there is none; lists the candidates.
    """
    candidates = list(dict.fromkeys(_candidates(version)))
    for candidate in candidates:
        if _runs(candidate, version):
            return candidate
    details = f"; {', '.join(map(str, candidates))} does not run" if candidates else ""
    raise MissingRequirement(
        f"Python {version} is not here: no python{version} on the PATH and none in "
        f"{_pyenv_folder()}{details}. Get it, for example with: pyenv install {version}"
    )


def check_compiler() -> None:
    """Check that there is a C compiler.

    Raises:
        MissingRequirement: there is none.
    """
    if shutil.which("cc") is None and shutil.which("gcc") is None:
        raise MissingRequirement(
            "A C compiler is not here (cc, gcc): some packages come as source. Get it, for example "
            "with: apt-get install gcc libc6-dev"
        )


def _candidates(version: str) -> Iterator[Path]:
    on_path = shutil.which(f"python{version}")
    if on_path:
        yield Path(on_path)
    # Newest first: 3.8.20 before 3.8.9.
    paths = _pyenv_folder().glob(f"{version}.*/bin/python{version}")
    yield from sorted(paths, key=lambda path: _numbers(path.parent.parent.name), reverse=True)


def _pyenv_folder() -> Path:
    return Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"


def _numbers(name: str) -> tuple[int, ...]:
    return tuple(int(part) for part in name.split(".") if part.isdigit())


def _runs(python: Path, version: str) -> bool:
    """Return whether this Python works: pyenv also has shims for versions that are not active."""
    code = "import ensurepip, ssl, venv, sys; print('%d.%d' % sys.version_info[:2])"
    try:
        process = subprocess.run(
            [str(python), "-c", code], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return process.stdout.strip() == version


# Network errors of pip, Docker and the resolver. A package or image that is found but wrong causes
# other messages: a hash that differs, a compiler's error.
_UNREACHABLE = re.compile(
    r"connection broken by|newconnectionerror|connecttimeouterror|readtimeouterror|proxyerror|"
    r"could not fetch url|read timed out|failed to establish a new connection|"
    r"name resolution|name or service not known|no such host|network is unreachable|"
    r"connection (refused|reset|timed out)|i/o timeout|handshake timeout|dial tcp|"
    r"failed to (do request|resolve source metadata)|request canceled|"
    r"pull access denied|manifest (unknown|for .* not found)",
    re.IGNORECASE,
)


def is_unreachable(output: str) -> bool:
    """Return whether the output of a failed program reports a network error."""
    return _UNREACHABLE.search(output) is not None
