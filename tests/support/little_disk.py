"""A file system that is soon full."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from load_lab.stack.native.services.start_order import postgres_user


@contextmanager
def little_disk(folder: Path, size: str = "1m") -> Iterator[Path]:
    """Mount a file system of that size at the folder."""
    folder.mkdir(exist_ok=True)
    argv = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)]
    mounted = subprocess.run(argv, capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def little_tablespace(engine, size: str = "1m") -> Iterator[Path]:
    """Yield the folder of a tablespace `little` of Postgres; without its tables, it is dropped."""
    # Postgres's user must be able to enter it.
    with tempfile.TemporaryDirectory(prefix="load-lab-disk-") as folder:
        Path(folder).chmod(0o755)
        place = Path(folder, "little")
        with little_disk(place, size):
            shutil.chown(place, postgres_user())
            engine.sql("postgres", f"CREATE TABLESPACE little LOCATION '{place}'")
            try:
                yield place
            finally:
                engine.sql("postgres", "DROP TABLESPACE little")
