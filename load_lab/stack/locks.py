"""Locks. Commands that change one stack wait for each other; a second measurement on this machine,
of whatever project, is refused; and what a running command has started for itself is known as such.

The kernel releases a lock when its process ends, however it ends.
"""

import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from load_lab.errors import LabError
from load_lab.paths import State, current_state, make_open, project, require_own


@contextmanager
def change_lock() -> Iterator[None]:
    """Lock the stack for a start, a stop or a change; wait for a command that has the lock."""
    with _open_state(current_state(), "change") as file:
        _wait(file, "changes this stack")
        yield


@contextmanager
def command_lock(state: State) -> Iterator[None]:
    """Lock a state for the stack or the programs that this command starts there for itself."""
    while True:
        with _open_state(state, "command") as file:
            _wait(file, f"uses {state.base}")
            # `lab down --data` may have removed it before.
            if os.fstat(file.fileno()).st_nlink:
                yield
                return


@contextmanager
def unused(state: State) -> Iterator[bool]:
    """Yield whether no running command has the state; none gets it before the block ends."""
    if not (state.base / "command.lock").exists():
        yield True
        return
    with _open_state(state, "command") as file:
        # Shared: two that only look do not take each other for its holder.
        yield _lock(file, fcntl.LOCK_SH)


def command_of(state: State) -> str:
    """Return the command that has the state, or had it last."""
    try:
        return (state.base / "command.lock").read_text()
    except FileNotFoundError:
        return "a command of an older version"


@contextmanager
def measurement_lock() -> Iterator[None]:
    """Lock the machine for a load: two at once would distort each other.

    Raises:
        LabError: another command measures.
    """
    with _open_measurement() as file:
        _require_lock(file)
        _write_holder(file)
        yield


def require_no_measurement() -> None:
    """Check that no command measures on this machine.

    Raises:
        LabError: one does.
    """
    with _open_measurement() as file:
        _require_lock(file)


def _open_state(state: State, name: str) -> IO[str]:
    make_open(state.base)
    return _open(state.base / f"{name}.lock")


def _wait(file: IO[str], what: str) -> None:
    if not _lock(file):
        # Rich: the exporter, which imports this, starts without it.
        from load_lab.console import note

        note(f"Waiting for {_holder(file)}, which {what}.")
        fcntl.flock(file, fcntl.LOCK_EX)
    _write_holder(file)


def _open_measurement() -> IO[str]:
    path = Path(os.environ.get("LAB_LOCK") or f"/tmp/load-lab-{os.getuid()}/measurement.lock")  # noqa: S108
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    require_own(path.parent)
    return _open(path)


def _open(path: Path) -> IO[str]:
    # Without truncation: the file has the holder of the lock.
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+")


def _lock(file: IO[str], kind: int = fcntl.LOCK_EX) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _require_lock(file: IO[str]) -> None:
    if not _lock(file):
        raise LabError(
            f"{_holder(file)} measures on this machine. Wait for it, or stop it (Ctrl-C, or "
            "`kill` with its process number)."
        )


def _write_holder(file: IO[str]) -> None:
    command = " ".join([Path(sys.argv[0]).name, *sys.argv[1:3]])
    file.seek(0)
    file.truncate()
    file.write(f"`{command}` (process {os.getpid()}, project {project().folder})")
    file.flush()


def _holder(file: IO[str]) -> str:
    file.seek(0)
    return file.read() or "another `lab`"
