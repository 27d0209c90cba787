"""The two stacks of a duet: each with its own state directory, ports and Postgres, on the same
CPUs.
"""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from load_lab.compare.variants import Variant
from load_lab.console import note, step
from load_lab.errors import LabError
from load_lab.interrupts import uninterrupted
from load_lab.paths import State, current_state, lab_file
from load_lab.settings import LOOPBACK, Settings, update_settings
from load_lab.stack import database
from load_lab.stack.locks import change_lock, command_lock
from load_lab.stack.native import NativeEngine
from load_lab.targets.reference.app import ReferenceApp

# Below the range that the kernel takes ports for outgoing connections from (32768 on Linux).
_FIRST_PORT = 21_000
_PORTS_EACH = 10


@dataclass(frozen=True)
class Stack:
    """One of the two; `base` are its settings without a variant."""

    number: int
    engine: NativeEngine
    state: State
    base: Settings

    @property
    def target(self) -> ReferenceApp:
        return ReferenceApp(self.engine)

    def restart(self, variant: Variant, code: Path, *, resets_data: bool) -> None:
        """Restart Nginx and the backend with a variant, and with empty caches; `resets_data`: with
        the data that was prepared.

        Raises:
            LabError: it does not start; the message has the end of its log.
        """
        _link(self.state.code, code)
        try:
            with self.engine.empty_caches(variant.settings(self.base)):
                if resets_data:
                    database.restore(self.engine)
        except LabError as error:
            raise LabError(f"{variant.name} does not start: {error}") from None


@contextmanager
def two_stacks(base: Settings) -> Iterator[tuple[Stack, Stack]]:
    """Start both stacks, and stop them afterwards. Their data stays for the next comparison."""
    with separate_stack(1, base) as first, separate_stack(2, base) as second:
        yield first, second


@contextmanager
def separate_stack(number: int, base: Settings) -> Iterator[Stack]:
    """Start a stack with its own ports, and stop it afterwards. Its data stays."""
    with ExitStack() as exit_stack:
        exit_stack.enter_context(command_lock(compared_state(number)))
        stack = _make(number, base)
        exit_stack.callback(_stop, stack)
        with step(f"Starting stack {number}"), change_lock():
            stack.engine.up(stack.base)
        yield stack


def compared_state(number: int) -> State:
    folder = current_state().base / "compare" / str(number)
    return State(folder, folder / "code")


def _make(number: int, base: Settings) -> Stack:
    state = compared_state(number)
    _link(state.code, lab_file())
    engine = NativeEngine(state)
    if engine.settings() is not None:
        note(f"Stopping stack {number}, which a killed comparison left running.")
        engine.down()
    return Stack(number, engine, state, update_settings(base, _free_ports(base, number)))


def _free_ports(base: Settings, number: int) -> list[str]:
    names = [name for name in base.as_env() if name.endswith("_PORT")]
    # Some services also use the next ports: toxiproxy one for each direction, exporters one each.
    first = _FIRST_PORT + 1000 * number
    ports = (
        port
        for port in count(first, _PORTS_EACH)
        if all(map(_is_free, range(port, port + _PORTS_EACH)))
    )
    return [f"{name}={port}" for name, port in zip(names, ports, strict=False)]


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def _link(link: Path, code: Path) -> None:
    link.unlink(missing_ok=True)
    link.symlink_to(code)


def _stop(stack: Stack) -> None:
    with uninterrupted(f"Stopping stack {stack.number} first; a moment."), change_lock():
        stack.engine.down()
