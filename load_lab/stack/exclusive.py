"""Exclusive use of the running stack for a measurement; afterwards it is as before."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from load_lab.console import note, step
from load_lab.errors import LabError
from load_lab.interrupts import interruptible, uninterrupted
from load_lab.settings import Settings, load_settings, restart_settings, update_settings
from load_lab.stack import database
from load_lab.stack.engine import Engine, require_reference_app
from load_lab.stack.locks import change_lock, measurement_lock


@dataclass
class ExclusiveUse:
    """The stack's settings for this use; `prepared`: whether to reset the data afterwards."""

    base: Settings
    prepared: bool = False


@contextmanager
def exclusive_use(
    engine: Engine, *, keep_settings: bool = False, reference_app: bool = True
) -> Iterator[ExclusiveUse]:
    """Use the stack exclusively, started if necessary; afterwards restore its settings and data.

    Its settings are those of a new start (`restart_settings`); with `keep_settings`, its own.
    Without `reference_app`, only what measures is started.

    Raises:
        LabError: another `lab` measures, or the stack does not start.
        Interrupted: Ctrl-C, TERM or HUP arrived in the block.
    """
    with measurement_lock(), interruptible():
        before = engine.settings()
        own = before if before is None or keep_settings else restart_settings(before)
        stack = ExclusiveUse(own or start_settings(reference_app=reference_app))
        if reference_app:
            require_reference_app(stack.base)
        try:
            if before is None:
                with change_lock():
                    engine.up(stack.base)
            yield stack
        finally:
            with uninterrupted("Cleaning up first; a moment."), change_lock():
                _restore_stack(engine, stack, before)


def start_settings(*, reference_app: bool) -> Settings:
    """Return the settings of a new start: of the stack, or only of what measures."""
    settings = load_settings()
    return settings if reference_app else update_settings(settings, ["LAB_REFERENCE_APP=off"])


def prepare(engine: Engine, stack: ExclusiveUse) -> None:
    """Reset the data to load_db's, and mark the stack to reset it again afterwards."""
    database.prepare_template(engine, stack.base)
    stack.prepared = True
    with engine.empty_caches():
        database.restore(engine)


def _restore_stack(engine: Engine, stack: ExclusiveUse, before: Settings | None) -> None:
    if engine.settings() is None:
        note("The stack is down: it was stopped during the run, or did not start.")
        return
    try:
        with step("Restoring the stack's settings" + (" and data" if stack.prepared else "")):
            if before is not None:
                engine.up(before)
            try:
                _restore_data(engine, stack)
            finally:
                if before is None:
                    engine.down()
    except (LabError, OSError) as error:
        # The error that ended the block is more important than this one.
        note(f"The stack could not be left as it was: {error}")


def _restore_data(engine: Engine, stack: ExclusiveUse) -> None:
    if stack.prepared:
        with engine.empty_caches():
            database.restore(engine)
