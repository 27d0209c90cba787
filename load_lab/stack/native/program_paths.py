"""Find the programs of the native engine."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from load_lab.errors import LabError
from load_lab.paths import BIN, PROGRAMS
from load_lab.stack.engine import VERSION_COMMANDS, version_in


def find(name: str) -> Path | None:
    """Return the path of a program: installed by `make setup` below `.lab`, or the system's."""
    folders = [BIN, PROGRAMS / "usr/bin", PROGRAMS / "usr/sbin", *_postgres_folders()]
    path = os.pathsep.join([*map(str, folders), os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    program = shutil.which(name, path=path)
    return Path(program) if program else None


def find_browser() -> Path | None:
    """Return the path of Chromium: the system's, or the one that `make test` unpacked."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if program := shutil.which(name):
            return Path(program)
    # The launcher in usr/bin looks for the program below /usr, so start the program itself.
    chromium = PROGRAMS / "usr/lib/chromium/chromium"
    return chromium if chromium.exists() else None


def browser_env(program: Path) -> dict[str, str]:
    """Return the environment for Chromium: unpacked, it needs its libraries and font settings."""
    if PROGRAMS not in program.parents:
        return dict(os.environ)
    environ = {**os.environ, **library_env()}
    if (PROGRAMS / "etc/fonts").is_dir():
        # Fontconfig also searches the user's data directory: this is where the fonts were unpacked.
        environ["FONTCONFIG_PATH"] = str(PROGRAMS / "etc/fonts")
        environ["XDG_DATA_HOME"] = str(PROGRAMS / "usr/share")
    return environ


def require(name: str) -> Path:
    """Return the path of the program `name`.

    Raises:
        LabError: it is not installed.
    """
    path = find(name)
    if path is None:
        raise LabError(f"The program {name} is not here. Run `make setup`, which gets it.")
    return path


def program_versions() -> dict[str, str]:
    """Return the versions of the installed programs."""
    commands = {
        service: (find(program), flag) for service, (program, flag) in VERSION_COMMANDS.items()
    }
    return {name: version_of([str(path), flag]) for name, (path, flag) in commands.items() if path}


def version_of(argv: list[str]) -> str:
    """Return the first version number in the output of a command."""
    result = subprocess.run(
        argv, env={**os.environ, **library_env()}, capture_output=True, text=True, check=False
    )
    return version_in(result.stdout + result.stderr)


def numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, to compare it; empty for an unknown one."""
    return tuple(map(int, re.findall(r"\d+", version)))


def library_env() -> dict[str, str]:
    """Return the variable with which unpacked programs find the libraries that were unpacked
    too.
    """
    # Debian 12 has some libraries below /lib; PulseAudio's are in a separate folder.
    patterns = ("usr/lib/*-linux-gnu*", "lib/*-linux-gnu*", "usr/lib/*-linux-gnu*/pulseaudio")
    folders = [str(f) for pattern in patterns for f in PROGRAMS.glob(pattern) if f.is_dir()]
    return {"LD_LIBRARY_PATH": ":".join(folders)} if folders else {}


def _postgres_folders() -> list[Path]:
    """Return the folders of Postgres's programs, newest version first: Debian has one per version,
    not on the PATH.
    """
    folders = [
        *PROGRAMS.glob("usr/lib/postgresql/*/bin"),
        *Path("/usr/lib/postgresql").glob("*/bin"),
    ]
    return sorted(folders, key=lambda folder: int(folder.parent.name), reverse=True)
