"""The programs of the native engine: where they are."""

import os
import shutil
import subprocess
from pathlib import Path

from lab.errors import LabError
from lab.paths import BIN, PROGRAMS
from lab.stack.engine import ASKED, version_in


def find(name: str) -> Path | None:
    """The program `name`: what `make setup` put below `.lab`, or what the system has."""
    folders = [BIN, PROGRAMS / "usr/bin", PROGRAMS / "usr/sbin", *_postgres_folders()]
    path = os.pathsep.join([*map(str, folders), os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    found = shutil.which(name, path=path)
    return Path(found) if found else None


def find_browser() -> Path | None:
    """Chromium: the system's, or what `make test` unpacked where there was none."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return Path(found)
    # Its launcher in usr/bin looks for the program below /usr, so start the program itself.
    unpacked = PROGRAMS / "usr/lib/chromium/chromium"
    return unpacked if unpacked.exists() else None


def browser_env(program: Path) -> dict[str, str]:
    """The environment for Chromium: unpacked, it needs its libraries and the fonts' settings."""
    if PROGRAMS not in program.parents:
        return dict(os.environ)
    found = {**os.environ, **library_env()}
    if (PROGRAMS / "etc/fonts").is_dir():
        # Fontconfig looks for fonts below the user's data too: that is where they were unpacked.
        found["FONTCONFIG_PATH"] = str(PROGRAMS / "etc/fonts")
        found["XDG_DATA_HOME"] = str(PROGRAMS / "usr/share")
    return found


def require(name: str) -> Path:
    """The program `name`.

    Raises:
        LabError: it is not there.
    """
    found = find(name)
    if found is None:
        raise LabError(f"The program {name} is not here. Run `make setup`, which gets it.")
    return found


def program_versions() -> dict[str, str]:
    """The versions of the programs that are here."""
    found = {service: (find(program), flag) for service, (program, flag) in ASKED.items()}
    return {name: version_of([str(path), flag]) for name, (path, flag) in found.items() if path}


def version_of(argv: list[str]) -> str:
    """The first version number in what that command says."""
    said = subprocess.run(
        argv, env={**os.environ, **library_env()}, capture_output=True, text=True, check=False
    )
    return version_in(said.stdout + said.stderr)


def library_env() -> dict[str, str]:
    """What unpacked programs need to find the libraries unpacked beside them."""
    # Debian 12 still packs some libraries below /lib; PulseAudio's keep a folder of their own.
    patterns = ("usr/lib/*-linux-gnu*", "lib/*-linux-gnu*", "usr/lib/*-linux-gnu*/pulseaudio")
    folders = [str(f) for pattern in patterns for f in PROGRAMS.glob(pattern) if f.is_dir()]
    return {"LD_LIBRARY_PATH": ":".join(folders)} if folders else {}


def _postgres_folders() -> list[Path]:
    """Debian keeps the server's programs off the PATH, a folder per version; newest first."""
    found = [*PROGRAMS.glob("usr/lib/postgresql/*/bin"), *Path("/usr/lib/postgresql").glob("*/bin")]
    return sorted(found, key=lambda folder: int(folder.parent.name), reverse=True)
