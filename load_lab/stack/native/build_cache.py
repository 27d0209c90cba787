"""The cache of built programs, which all checkouts of a user share.

It is below the user's cache folder. Each build has a folder with its programs, and a checksum next
to each. CACHE=off: it is neither read nor written.
"""

import hashlib
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from load_lab.console import note


def cache_folder() -> Path | None:
    """Return the folder of all builds, None if the cache is off."""
    if os.environ.get("CACHE") == "off":
        return None
    folder = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # Its specification says to ignore a relative path.
    if not folder.is_absolute():
        folder = Path(os.environ.get("HOME") or "/") / ".cache"
    return folder / "load-lab" / "programs"


def restore(key: str, names: Iterable[str], target: Path) -> bool:
    """Copy the programs of a build to `target`; return whether all of them were there, intact."""
    folder = cache_folder()
    if folder is None:
        return False
    try:
        damaged = [name for name in names if not _copy(folder / key, name, target)]
    except FileNotFoundError:
        return False
    except OSError as error:
        note(f"The cached programs in {folder / key} can't be read: {error.strerror}.")
        return False
    for name in damaged:
        note(f"{folder / key / name} does not match its checksum, so it is built again.")
    return not damaged


def store(key: str, programs: Iterable[Path]) -> None:
    """Store the programs of a build, or note why they can't be stored."""
    folder = cache_folder()
    if folder is None:
        return
    try:
        (folder / key).mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder / key) as scratch:
            for program in programs:
                copy = Path(shutil.copy(program, scratch))
                _checksum_file(folder / key, program.name).write_bytes(_checksum(copy))
                copy.replace(folder / key / program.name)
    except OSError as error:
        note(f"What was built is not cached: {folder} can't be written ({error.strerror}).")


def _copy(folder: Path, name: str, target: Path) -> bool:
    """Copy a program, then return whether the copy matches the stored checksum."""
    copy = Path(shutil.copy(folder / name, target))
    return _checksum(copy) == _checksum_file(folder, name).read_bytes()


def _checksum_file(folder: Path, name: str) -> Path:
    return folder / f"{name}.sha256"


def _checksum(program: Path) -> bytes:
    """Return the line of sha256sum for a program, which `sha256sum --check` reads."""
    with program.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return f"{digest}  {program.name}\n".encode()
