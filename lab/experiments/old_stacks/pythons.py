"""Where this machine has an old Python, if it has it."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from lab.errors import LabError


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
