"""What LAB_LATENCY_MS really does, measured before anything else is, and kept with the figures."""

from typing import Any

import httpx

from lab.errors import LabError
from lab.settings import Settings
from lab.stack.engine import Engine
from lab.stack.inspect import ask_latency

# Answers of /healthz, each on a connection of its own. The quickest counts, and all is looked at
# more than once: a delay stays, other than a moment in which the machine is busy.
_ROUNDS = 3
_TRIES = 3
# What a round trip may take beyond its delay, for the way itself and for a machine that has others
# to serve: so many ms, and so much of the delay.
ALLOWED_MS = 20
ALLOWED_RATIO = 0.2


def measured(settings: Settings, token: str) -> dict[str, Any]:
    """The delays as they are now, in ms.

    database_ms: a round trip of the backend to Postgres on an open connection. client_ms: what an
    answer of the backend takes on the way of its clients, direct_ms past what delays.
    new_connection_ms: a new connection to Postgres, new_connection_delays: as many LAB_LATENCY_MS.

    Raises:
        LabError: the backend or toxiproxy does not answer.
    """
    said = ask_latency(settings, token)
    delay, connecting = settings.LAB_LATENCY_MS, said["new_connection_ms"]
    return {
        "database_ms": round(min(said["round_trips_ms"]), 1),
        "client_ms": _answer_ms(settings.server_url),
        "direct_ms": _answer_ms(settings.backend_url),
        "new_connection_ms": round(connecting, 1),
        "new_connection_delays": round(connecting / delay, 1) if delay else None,
        "postgres_auth": said["postgres_auth"],
    }


def verified(settings: Settings, token: str) -> dict[str, Any]:
    """The delays as they are now, which are those of the settings.

    Raises:
        LabError: they are not; with what was measured.
    """
    for _ in range(_TRIES):
        found = measured(settings, token)
        wrong = _wrong(found, settings)
        if not wrong:
            return found
    raise LabError(
        f"{wrong} Is the machine busy? `lab up` sets the delays anew; see `lab logs toxiproxy`."
    )


def of_running(engine: Engine) -> dict[str, Any] | None:
    """The delays of the running stack as they are now; None when nothing runs or answers."""
    settings = engine.settings()
    if settings is None:
        return None
    try:
        return measured(settings, engine.token())
    except (LabError, OSError):
        return None


def postgres_auth(settings: Settings, token: str) -> str:
    """How the backend's connections log in: scram-sha-256, md5, trust, password or other."""
    return str(ask_latency(settings, token)["postgres_auth"])


def _wrong(found: dict[str, Any], settings: Settings) -> str:
    """What is not as the settings say; nothing when all is."""
    delay = settings.LAB_LATENCY_MS
    ways = {
        "Postgres, as the backend sees it,": (found["database_ms"], delay),
        f"The backend at {settings.server_url}": (found["client_ms"], delay),
    }
    for who, (taken, least) in ways.items():
        most = least * (1 + ALLOWED_RATIO) + ALLOWED_MS
        if not least <= taken <= most:
            return f"{who} answers after {taken} ms; the settings make it {least} to {most:.0f} ms."
    return ""


def _answer_ms(address: str) -> float:
    """The quickest of some answers of /healthz, which asks nothing of Postgres."""
    try:
        with httpx.Client(timeout=60, headers={"Connection": "close"}) as client:
            answers = [client.get(f"{address}/healthz") for _ in range(_ROUNDS)]
    except httpx.HTTPError as error:
        raise LabError(
            f"{address}/healthz does not answer ({error}). `lab up` starts what is missing; see "
            "`lab logs toxiproxy`."
        ) from None
    return round(min(answer.elapsed.total_seconds() for answer in answers) * 1000, 1)
