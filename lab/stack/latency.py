"""Measure the effect of LAB_LATENCY_MS before anything else; it is stored with the results."""

from typing import Any

import httpx

from lab.errors import LabError
from lab.settings import Settings
from lab.stack.engine import Engine
from lab.stack.inspect import query_latency

# Responses of /healthz, each on a new connection. The fastest counts, and a wrong delay is measured
# again: a delay is permanent, a busy moment of the machine is not.
_ROUNDS = 3
_TRIES = 3
# Tolerance of a round trip beyond its delay, for the network and a busy machine: a number of ms,
# and a share of the delay.
TOLERANCE_MS = 20
TOLERANCE_RATIO = 0.2


def measure(settings: Settings, token: str) -> dict[str, Any]:
    """Measure the current delays, in ms.

    database_ms: a round trip from the backend to Postgres on an open connection. client_ms: a
    response of the backend on its clients' path; direct_ms: the same without toxiproxy.
    new_connection_ms: a new connection to Postgres; new_connection_delays: the same as a multiple
    of LAB_LATENCY_MS.

    Raises:
        LabError: the backend or toxiproxy does not respond.
    """
    said = query_latency(settings, token)
    delay, connecting = settings.LAB_LATENCY_MS, said["new_connection_ms"]
    return {
        "database_ms": round(min(said["round_trips_ms"]), 1),
        "client_ms": _answer_ms(settings.server_url),
        "direct_ms": _answer_ms(settings.backend_url),
        "new_connection_ms": round(connecting, 1),
        "new_connection_delays": round(connecting / delay, 1) if delay else None,
        "postgres_auth": said["postgres_auth"],
    }


def verify(settings: Settings, token: str) -> dict[str, Any]:
    """Measure the current delays, and check that they match the settings.

    Raises:
        LabError: they do not; the message has the measured values.
    """
    for _ in range(_TRIES):
        found = measure(settings, token)
        wrong = _wrong(found, settings)
        if not wrong:
            return found
    raise LabError(
        f"{wrong} Is the machine busy? `lab up` sets the delays anew; see `lab logs toxiproxy`."
    )


def measure_running(engine: Engine) -> dict[str, Any] | None:
    """Return the current delays of the running stack; None when nothing runs or responds."""
    settings = engine.settings()
    if settings is None:
        return None
    try:
        return measure(settings, engine.token())
    except (LabError, OSError):
        return None


def postgres_auth(settings: Settings, token: str) -> str:
    """Return the authentication method of the backend's connections: scram-sha-256, md5, trust,
    password or other.
    """
    return str(query_latency(settings, token)["postgres_auth"])


def _wrong(found: dict[str, Any], settings: Settings) -> str:
    """Return the first difference from the settings; empty when there is none."""
    delay = settings.LAB_LATENCY_MS
    ways = {
        "Postgres, as the backend sees it,": (found["database_ms"], delay),
        f"The backend at {settings.server_url}": (found["client_ms"], delay),
    }
    for who, (taken, least) in ways.items():
        most = least * (1 + TOLERANCE_RATIO) + TOLERANCE_MS
        if not least <= taken <= most:
            return f"{who} answers after {taken} ms; the settings make it {least} to {most:.0f} ms."
    return ""


def _answer_ms(address: str) -> float:
    """Return the fastest of several responses of /healthz, which does not query Postgres."""
    try:
        with httpx.Client(timeout=60, headers={"Connection": "close"}) as client:
            answers = [client.get(f"{address}/healthz") for _ in range(_ROUNDS)]
    except httpx.HTTPError as error:
        raise LabError(
            f"{address}/healthz does not answer ({error}). `lab up` starts what is missing; see "
            "`lab logs toxiproxy`."
        ) from None
    return round(min(answer.elapsed.total_seconds() for answer in answers) * 1000, 1)
