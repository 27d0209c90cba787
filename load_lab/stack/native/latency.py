"""Delays of the native engine, by toxiproxy."""

import httpx

from load_lab.paths import State
from load_lab.settings import LOOPBACK, Settings
from load_lab.stack import http
from load_lab.stack.native import backend
from load_lab.stack.native.services.toxiproxy import toxics_env


def differs(one: Settings, other: Settings) -> bool:
    """Return whether a setting of the delays differs."""
    return any(
        value != one.as_env()[name] for name, value in other.as_env().items() if _is_delay(name)
    )


def _is_delay(name: str) -> bool:
    return name.startswith("LAB_LATENCY_")


def apply(settings: Settings, state: State) -> None:
    """Set the delays of `settings`, while no connection uses toxiproxy.

    Raises:
        LabError: toxiproxy does not respond.
    """
    begin(settings, state)
    end(settings, state)


def begin(settings: Settings, state: State) -> None:
    """Create the proxies with the delays of `settings`. Without a delay, keep the old proxies for
    their open connections.

    Raises:
        LabError: toxiproxy does not respond.
    """
    if settings.is_delayed:
        _update_toxiproxy(settings, state)


def end(settings: Settings, state: State) -> None:
    """Remove the proxies that `settings` do not need, once no connection uses them."""
    if not settings.is_delayed and _has_proxies(settings):
        _update_toxiproxy(settings, state)


def _has_proxies(settings: Settings) -> bool:
    """Return whether toxiproxy has proxies; False when it does not respond."""
    try:
        url = f"http://{LOOPBACK}:{settings.LAB_TOXIPROXY_PORT}/proxies"
        return bool(http.get(url, timeout=10).json())
    except httpx.HTTPError:
        return False


def _update_toxiproxy(settings: Settings, state: State) -> None:
    backend.run(["python", "-m", "ops.toxics"], settings, state, env=toxics_env(settings))
