"""Two stacks of the reference app at once: each with its own state directory, ports and Postgres,
on the same CPUs.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from load_lab.console import note, step
from load_lab.interrupts import uninterrupted
from load_lab.paths import State, compared_state, lab_file
from load_lab.settings import Settings, update_settings
from load_lab.stack import database
from load_lab.stack.engine import Engine
from load_lab.stack.free_ports import free_ports
from load_lab.stack.locks import change_lock, command_lock
from load_lab.stack.measuring_services import side_of
from load_lab.stack.native import NativeEngine
from load_lab.stack.reference import DATABASE, ROLE
from load_lab.targets.databases import COUNT_CONNECTIONS
from load_lab.targets.reference.app import Entry, ReferenceApp
from load_lab.targets.reference.variants import code_of, settings_with
from load_lab.targets.statements import Statements, read_statements
from load_lab.targets.subject import AS_IS, Running, Variant

# Below the range that the kernel takes ports for outgoing connections from (32768 on Linux).
_FIRST_PORT = 21_000
# Some services also use the next ports: toxiproxy one for each direction, exporters one each.
_PORTS_EACH = 10


@dataclass(frozen=True)
class Stack:
    """See `Instance`: one of the two. `base` are its settings without a variant, `codes` the code
    of each commit; `writes`: its loads change the data.
    """

    number: int
    engine: NativeEngine
    state: State
    base: Settings
    codes: Mapping[str | None, Path] = field(default_factory=dict)
    writes: bool = False

    @contextmanager
    def running(self, variant: Variant = AS_IS) -> Iterator[Running]:
        """Restart Nginx and the backend; they run on after the block."""
        _link(self.state.code, self.codes[variant.changes.git])
        with self.engine.empty_caches(settings_with(self.base, variant)):
            if self.writes:
                database.restore(self.engine)
        yield running_stack(self.engine, self.base)


def running_stack(engine: Engine, settings: Settings, entry: Entry = "nginx") -> Running:
    return Running(
        engine,
        settings,
        ReferenceApp(engine, entry),
        partial(_pids, engine),
        read_statements=partial(_read_statements, engine),
        why_no_statements=lambda: "Postgres can't be reached from here: see `lab status`",
        count_connections=lambda _: int(engine.sql(DATABASE, COUNT_CONNECTIONS)[0]),
    )


def _read_statements(engine: Engine, *, texts: bool = False) -> Statements | None:
    """Return the statements of the app, as the superuser sees them."""
    # psycopg takes a tenth of a second to import.
    import psycopg

    with suppress(psycopg.Error):
        connection = engine.connect_postgres()
        if connection:
            with connection:
                found = read_statements(connection, texts=texts)
                return found and replace(found, database=DATABASE, role=ROLE)
    return None


def _pids(engine: Engine) -> dict[str, int]:
    """Return the main processes of what answers a stack's requests, Postgres included."""
    return {name: pid for name, pid in engine.pids().items() if side_of(name) == "target"}


@contextmanager
def two_stacks(
    base: Settings, variants: Sequence[Variant] = (AS_IS,), *, writes: bool = False
) -> Iterator[tuple[Stack, Stack]]:
    """Start both stacks, and stop them afterwards. Their data stays for the next comparison: that
    which load_db makes.

    Raises:
        LabError: a stack does not start, or a commit can't be installed.
    """
    with ExitStack() as exit_stack:
        by_commit = {variant.changes.git: variant for variant in variants}
        codes = {
            commit: exit_stack.enter_context(code_of(variant))
            for commit, variant in by_commit.items()
        }
        first, second = (
            replace(
                exit_stack.enter_context(separate_stack(number, base)), codes=codes, writes=writes
            )
            for number in (1, 2)
        )
        if writes:
            exit_stack.enter_context(_data_kept((first, second)))
        yield first, second


@contextmanager
def _data_kept(stacks: Sequence[Stack]) -> Iterator[None]:
    """Let restarts put the data back, and do so at the end: the next comparison has it, too."""
    for stack in stacks:
        database.prepare_template(stack.engine, stack.base)
    try:
        yield
    finally:
        with uninterrupted("Putting the data back first; a moment."):
            for stack in stacks:
                database.restore(stack.engine)


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


def _make(number: int, base: Settings) -> Stack:
    state = compared_state(number)
    _link(state.code, lab_file())
    engine = NativeEngine(state)
    if engine.settings() is not None:
        note(f"Stopping stack {number}, which a killed comparison left running.")
        engine.down()
    return Stack(number, engine, state, update_settings(base, _ports(base, number)))


def _ports(base: Settings, number: int) -> list[str]:
    names = [name for name in base.as_env() if name.endswith("_PORT")]
    ports = free_ports(_FIRST_PORT + 1000 * number, _PORTS_EACH)
    return [f"{name}={port}" for name, port in zip(names, ports, strict=False)]


def _link(link: Path, code: Path) -> None:
    link.unlink(missing_ok=True)
    link.symlink_to(code)


def _stop(stack: Stack) -> None:
    with uninterrupted(f"Stopping stack {stack.number} first; a moment."), change_lock():
        stack.engine.down()
