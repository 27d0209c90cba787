"""Delays of the native engine: by toxiproxy, or by the kernel."""

from lab.engine.native import backend, netem
from lab.engine.native.toxiproxy import toxics_env
from lab.paths import State
from lab.settings import Settings


def check(settings: Settings, state: State) -> None:
    """Raises LabError when what `settings` ask for can't be had here; changes nothing."""
    if settings.delayed_by_netem:
        netem.check(state)


def differs(one: Settings, other: Settings) -> bool:
    """Whether something else is delayed, or otherwise."""
    return any(value != one.as_env()[name] for name, value in other.as_env().items() if _is(name))


def _is(name: str) -> bool:
    return name.startswith("LAB_LATENCY_")


def remove(state: State) -> None:
    """Take away what would outlive the stack; toxiproxy ends with it."""
    netem.remove(state)


def apply(settings: Settings, state: State) -> None:
    """Delay as `settings` say; before the server starts or reloads with them.

    Raises:
        LabError: toxiproxy does not answer, or the kernel refuses.
    """
    if settings.delayed_by_netem:
        netem.delay(settings, state)
    else:
        netem.remove(state)
    backend.manage(["-m", "ops.toxics"], settings, state, env=toxics_env(settings))
