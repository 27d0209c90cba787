"""Checks of settings that depend on each other.

A check raises ValueError with the current values and those that would fit.
"""

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

from lab_settings.kinds import Server

TIMEOUTS = (
    "LAB_CLIENT_TIMEOUT",
    "LAB_PROXY_TIMEOUT",
    "LAB_TIMEOUT",
    "LAB_DB_STATEMENT_TIMEOUT",
    "LAB_DB_LOCK_TIMEOUT",
    "LAB_DB_CONNECT_TIMEOUT",
)

# Postgres reserves three for its superuser, the exporter uses one, and a check of the lab one more.
RESERVED_CONNECTIONS = 5

# One-way delays, with SCRAM (docs/latency.md): five for the connection, one for its first
# statement.
DELAYS_TO_FIRST_RESPONSE = 6


def _check_timeout_order(values: Mapping[str, Any]) -> None:
    for outer, inner in pairwise(TIMEOUTS):
        if values[inner] >= values[outer]:
            raise ValueError(
                f"{inner}={values[inner]} must be shorter than "
                f"{outer}={values[outer]}, the timeout outside it"
            )


def _check_pool_sizes(values: Mapping[str, Any]) -> None:
    """Check the size of the pools during normal operation.

    During a reload, old workers finish while new ones start. A new pool that gets no connection
    then fails its requests until an old worker exits (config/postgres/pool.py).
    """
    if values["LAB_DB_POOL"] == "off":
        return
    processes = values["LAB_WORKERS"] + (values["LAB_SECOND_SERVER"] != "off")
    connections = processes * int(values["LAB_DB_POOL"])
    available = values["LAB_DB_MAX_CONNECTIONS"] - RESERVED_CONNECTIONS
    if connections > available:
        raise ValueError(
            f"{processes} processes with LAB_DB_POOL={values['LAB_DB_POOL']} need {connections} "
            f"connections, but LAB_DB_MAX_CONNECTIONS={values['LAB_DB_MAX_CONNECTIONS']} allows "
            f"{available}. Lower LAB_DB_POOL or LAB_WORKERS, or raise LAB_DB_MAX_CONNECTIONS"
        )


def _check_websocket_server(values: Mapping[str, Any]) -> None:
    has_asgi = Server(values["LAB_SERVER"]).is_asgi or values["LAB_SECOND_SERVER"] != "off"
    if values["LAB_WEBSOCKETS"] == "on" and not has_asgi:
        asgi_servers = ", ".join(server for server in Server if server.is_asgi)
        raise ValueError(
            f"LAB_WEBSOCKETS=on needs an ASGI server, but LAB_SERVER={values['LAB_SERVER']} uses "
            f"WSGI. Set LAB_SERVER to one of {asgi_servers}, or set LAB_SECOND_SERVER"
        )


def _check_latency(values: Mapping[str, Any]) -> None:
    maximum = values["LAB_DB_CONNECT_TIMEOUT"] * 1000 // DELAYS_TO_FIRST_RESPONSE
    if values["LAB_LATENCY_MS"] >= maximum:
        raise ValueError(
            f"LAB_LATENCY_MS={values['LAB_LATENCY_MS']} is too long: a new connection to Postgres "
            f"and its first response take up to {DELAYS_TO_FIRST_RESPONSE} delays, more than "
            f"LAB_DB_CONNECT_TIMEOUT={values['LAB_DB_CONNECT_TIMEOUT']}. Set less than {maximum} "
            "or raise LAB_DB_CONNECT_TIMEOUT"
        )


def _check_delayed_servers(values: Mapping[str, Any]) -> None:
    if values["LAB_LATENCY_MS"] and values["LAB_SECOND_SERVER"] != "off":
        raise ValueError(
            f"LAB_LATENCY_MS={values['LAB_LATENCY_MS']} delays only LAB_SERVER, so its results "
            f"can't be compared with LAB_SECOND_SERVER={values['LAB_SECOND_SERVER']}. Set "
            "LAB_LATENCY_MS=0 or LAB_SECOND_SERVER=off"
        )


def _check_daphne_workers(values: Mapping[str, Any]) -> None:
    if values["LAB_SERVER"] == Server.DAPHNE and values["LAB_WORKERS"] != 1:
        raise ValueError(
            f"LAB_SERVER=daphne runs one process, but LAB_WORKERS={values['LAB_WORKERS']}. Set "
            "LAB_WORKERS=1, or use another server"
        )


CHECKS: tuple[Callable[[Mapping[str, Any]], None], ...] = (
    _check_timeout_order,
    _check_pool_sizes,
    _check_websocket_server,
    _check_latency,
    _check_delayed_servers,
    _check_daphne_workers,
)
