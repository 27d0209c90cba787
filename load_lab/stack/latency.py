"""Measure the effect of LAB_LATENCY_MS before anything else; it is stored with the results."""

from typing import Any

import httpx

from load_lab.errors import LabError
from load_lab.settings import Settings
from load_lab.stack.engine import Engine
from load_lab.stack.reported import query_latency

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
    report = query_latency(settings, token)
    delay, connection = settings.LAB_LATENCY_MS, report["new_connection_ms"]
    return {
        "database_ms": round(min(report["round_trips_ms"]), 1),
        "client_ms": _response_ms(settings.server_url),
        "direct_ms": _response_ms(settings.backend_url),
        "new_connection_ms": round(connection, 1),
        "new_connection_delays": round(connection / delay, 1) if delay else None,
        "postgres_auth": report["postgres_auth"],
    }


def verify(settings: Settings, token: str) -> dict[str, Any]:
    """Measure the current delays, and check that they match the settings.

    Raises:
        LabError: they do not; the message has the measured values.
    """
    for _ in range(_TRIES):
        delays = measure(settings, token)
        mismatch = _mismatch(delays, settings)
        if not mismatch:
            return delays
    raise LabError(
        f"{mismatch} Is the machine busy? `lab up` sets the delays anew; see `lab logs toxiproxy`."
    )


def measure_running(engine: Engine) -> dict[str, Any] | None:
    """Return the current delays of the running stack; None when nothing runs or responds."""
    settings = engine.settings()
    if settings is None or settings.LAB_REFERENCE_APP == "off":
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


def _mismatch(delays: dict[str, Any], settings: Settings) -> str:
    """Return the first difference from the settings; empty when there is none."""
    delay = settings.LAB_LATENCY_MS
    paths = {
        "Postgres, as the backend sees it,": (delays["database_ms"], delay),
        f"The backend at {settings.server_url}": (delays["client_ms"], delay),
    }
    for path, (time, low) in paths.items():
        high = low * (1 + TOLERANCE_RATIO) + TOLERANCE_MS
        if not low <= time <= high:
            return f"{path} answers after {time} ms; the settings make it {low} to {high:.0f} ms."
    return ""


def _response_ms(address: str) -> float:
    """Return the fastest of several responses of /healthz, which does not query Postgres."""
    try:
        with httpx.Client(timeout=60, headers={"Connection": "close"}) as client:
            responses = [client.get(f"{address}/healthz") for _ in range(_ROUNDS)]
    except httpx.HTTPError as error:
        raise LabError(
            f"{address}/healthz does not answer ({error}). `lab up` starts what is missing; see "
            "`lab logs toxiproxy`."
        ) from None
    return round(min(response.elapsed.total_seconds() for response in responses) * 1000, 1)
