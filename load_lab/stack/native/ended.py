"""What commands left that ended without stopping it: separate stacks, and started programs."""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from load_lab.paths import State, current_state, separate_states
from load_lab.stack.locks import command_of, unused
from load_lab.stack.native.engine import NativeEngine
from load_lab.stack.native.started_processes import stop_abandoned
from load_lab.stack.native.supervision import STARTED, leftovers, mark_of, started_in

# What a second instance of an app leaves: its logs.
_LOGS_BYTES = 1_000_000


@dataclass(frozen=True)
class Left:
    """What a command started: its stack's folder, or the names of programs; `command`: which, and
    its process. `is_running`: the command still runs, and has it.
    """

    command: str
    what: str
    processes: int
    data_bytes: int
    is_running: bool


def find_left() -> list[Left]:
    """Return what commands of this project have started for themselves and is there now."""
    found = [_programs(current_state()), *map(_stack, separate_states())]
    return [each for each in found if each.processes or each.data_bytes > _LOGS_BYTES]


def end_left(*, data: bool = False) -> list[Left]:
    """End what commands left that have ended; remove their data, too, if wanted. Return what was
    found, and what a running command has.
    """
    found = find_left()
    with unused(current_state()) as is_free:
        if is_free:
            stop_abandoned(current_state())
    for state in separate_states():
        with unused(state) as is_free:
            if is_free:
                NativeEngine(state).down()
                if data:
                    state.remove()
    return found


def _programs(state: State) -> Left:
    programs = started_in(state)
    names = {mark_of(process, STARTED) for process in programs}
    return _left(state, ", ".join(sorted(names)), len(programs), 0)


def _stack(state: State) -> Left:
    return _left(state, str(state.base), len(leftovers(state)), _size(state))


def _left(state: State, what: str, processes: int, data_bytes: int) -> Left:
    with unused(state) as is_free:
        return Left(command_of(state), what, processes, data_bytes, is_running=not is_free)


def _size(state: State) -> int:
    """Return the disk space of a state's files."""
    size = 0
    walks = (walk for folder in state.folders for walk in os.walk(folder))
    for path in (Path(folder, name) for folder, _, names in walks for name in names):
        # A running program removes some during the walk.
        with suppress(OSError):
            size += 512 * path.lstat().st_blocks
    return size
