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


def _each_timeout_is_shorter_than_the_one_outside(values: Mapping[str, Any]) -> None:
    for outer, inner in pairwise(TIMEOUTS):
        if values[inner] >= values[outer]:
            raise ValueError(
                f"{inner}={values[inner]} must be shorter than "
                f"{outer}={values[outer]}, the timeout outside it"
            )


def _pools_fit_into_postgres(values: Mapping[str, Any]) -> None:
    """Check the size of the pools during normal operation.

    During a reload, old workers finish while new ones start. A new pool that gets no connection
    then fails its requests until an old worker exits (config/postgres/pool.py).
    """
    if values["LAB_DB_POOL"] == "off":
        return
    processes = values["LAB_WORKERS"] + (values["LAB_SECOND_SERVER"] != "off")
    wanted = processes * int(values["LAB_DB_POOL"])
    there = values["LAB_DB_MAX_CONNECTIONS"] - RESERVED_CONNECTIONS
    if wanted > there:
        raise ValueError(
            f"{processes} processes with LAB_DB_POOL={values['LAB_DB_POOL']} take {wanted} "
            f"connections; LAB_DB_MAX_CONNECTIONS={values['LAB_DB_MAX_CONNECTIONS']} leaves "
            f"{there} of them. Lower the pool or LAB_WORKERS, or raise LAB_DB_MAX_CONNECTIONS"
        )


def _websockets_need_asgi(values: Mapping[str, Any]) -> None:
    served = Server(values["LAB_SERVER"]).is_asgi or values["LAB_SECOND_SERVER"] != "off"
    if values["LAB_WEBSOCKETS"] == "on" and not served:
        speaking = ", ".join(server for server in Server if server.is_asgi)
        raise ValueError(
            f"LAB_WEBSOCKETS=on needs a server that speaks ASGI; LAB_SERVER={values['LAB_SERVER']} "
            f"does not. Take one of {speaking}, or set LAB_SECOND_SERVER"
        )


def _a_delayed_connection_comes_in_time(values: Mapping[str, Any]) -> None:
    most = values["LAB_DB_CONNECT_TIMEOUT"] * 1000 // DELAYS_TO_FIRST_RESPONSE
    if values["LAB_LATENCY_MS"] >= most:
        raise ValueError(
            f"LAB_LATENCY_MS={values['LAB_LATENCY_MS']} is too long: a new connection to Postgres "
            f"and its first answer take up to {DELAYS_TO_FIRST_RESPONSE} delays, and "
            f"LAB_DB_CONNECT_TIMEOUT={values['LAB_DB_CONNECT_TIMEOUT']} ends them. Allowed: less "
            f"than {most}, or more with a longer timeout"
        )


def _one_server_is_delayed(values: Mapping[str, Any]) -> None:
    if values["LAB_LATENCY_MS"] and values["LAB_SECOND_SERVER"] != "off":
        raise ValueError(
            f"LAB_LATENCY_MS={values['LAB_LATENCY_MS']} delays LAB_SERVER alone, and would compare "
            f"it with LAB_SECOND_SERVER={values['LAB_SECOND_SERVER']} without a delay. Set one "
            "of them to its default: LAB_LATENCY_MS=0 or LAB_SECOND_SERVER=off"
        )


def _daphne_is_one_process(values: Mapping[str, Any]) -> None:
    if values["LAB_SERVER"] == Server.DAPHNE and values["LAB_WORKERS"] != 1:
        raise ValueError(
            f"LAB_SERVER=daphne runs one process, and LAB_WORKERS={values['LAB_WORKERS']}. Set "
            "LAB_WORKERS=1, or take another server"
        )


CHECKS: tuple[Callable[[Mapping[str, Any]], None], ...] = (
    _each_timeout_is_shorter_than_the_one_outside,
    _pools_fit_into_postgres,
    _websockets_need_asgi,
    _a_delayed_connection_comes_in_time,
    _one_server_is_delayed,
    _daphne_is_one_process,
)
