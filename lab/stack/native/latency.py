"""Delays of the native engine, which toxiproxy makes."""

import httpx

from lab import http
from lab.paths import State
from lab.settings import LOOPBACK, Settings
from lab.stack.native import backend
from lab.stack.native.services.toxiproxy import toxics_env


def differs(one: Settings, other: Settings) -> bool:
    """Whether something else is delayed, or otherwise."""
    return any(value != one.as_env()[name] for name, value in other.as_env().items() if _is(name))


def _is(name: str) -> bool:
    return name.startswith("LAB_LATENCY_")


def apply(settings: Settings, state: State) -> None:
    """Delay as `settings` say, while nobody is on the way.

    Raises:
        LabError: toxiproxy does not answer.
    """
    begin(settings, state)
    end(settings, state)


def begin(settings: Settings, state: State) -> None:
    """Make the way that `settings` want, and leave the one before: who is on it goes on living.

    Raises:
        LabError: toxiproxy does not answer.
    """
    if settings.is_delayed:
        _tell_toxiproxy(settings, state)


def end(settings: Settings, state: State) -> None:
    """Take away the ways that `settings` do not want, once nobody takes them any more."""
    if not settings.is_delayed and _has_proxies(settings):
        _tell_toxiproxy(settings, state)


def _has_proxies(settings: Settings) -> bool:
    """One that does not answer has none."""
    try:
        url = f"http://{LOOPBACK}:{settings.LAB_TOXIPROXY_PORT}/proxies"
        return bool(http.get(url, timeout=10).json())
    except httpx.HTTPError:
        return False


def _tell_toxiproxy(settings: Settings, state: State) -> None:
    backend.manage(["-m", "ops.toxics"], settings, state, env=toxics_env(settings))
