"""Figures of a run that only some scenarios and profiles have; None where one has them not."""

from typing import Any

from lab.analysis.collect import Collected

# Figures that lie deeper in a result than others.
OF_WEBSOCKETS = {
    "connections": "connections",
    "ws_messages": "messages",
    "ws_expected": "expected",
    "ws_lost": "lost",
    "ws_doubled": "doubled",
    "ws_closed": "closed",
    "ws_delay_p95_ms": "delay_p95_ms",
}


def figure_of(result: dict[str, Any], name: str) -> float | None:
    """A figure of a stored result; None where it has none of that name."""
    if name in OF_WEBSOCKETS:
        found = (result.get("websockets") or {}).get(OF_WEBSOCKETS[name])
    else:
        found = result.get(name)
    return None if found is None else float(found)


def broke_at(result: dict[str, Any]) -> float | None:
    """What the target bore when it broke; None for a run that held.

    Of results before format 5: what was offered when that was seen, which is more.
    """
    point = result.get("break_point")
    return float(point.get("rate", point["offered"])) if point else None


_DELAYS = {"delay_p50_ms": "p(50)", "delay_p95_ms": "p(95)", "delay_max_ms": "max"}


def staleness(collected: Collected) -> dict[str, int] | None:
    """How long bookings stayed unseen, and how many did beyond the bound."""
    if "lab_staleness_unseen" not in collected.summary["metrics"]:
        return None
    stats = {"seen": "count", "p50_ms": "p(50)", "p95_ms": "p(95)", "max_ms": "max"}
    seen = {name: round(collected.value("lab_staleness", stat)) for name, stat in stats.items()}
    return seen | {"unseen": int(collected.value("lab_staleness_unseen", "count"))}


def websockets(collected: Collected) -> dict[str, float | None] | None:
    """What became of the messages that bookings owed to sockets; delays from commit to receipt."""
    if "lab_ws_lost" not in collected.summary["metrics"]:
        return None
    counted = ("messages", "expected", "lost", "doubled", "closed")
    counts = {name: int(collected.value(f"lab_ws_{name}", "count")) for name in counted}
    delays = {name: collected.milliseconds("lab_ws_delay", stat) for name, stat in _DELAYS.items()}
    held = int(collected.value("lab_ws_connections", "max"))
    return {"connections": held, **counts, **delays}


def unfinished(collected: Collected) -> int | None:
    """Requests of users that the end of the load cut off; None where each is waited for.

    A request that is sent again is one request of its user. k6 forgets a request that it cuts off,
    so what ended is taken from what was begun.
    """
    if "lab_begun" not in collected.summary["metrics"]:
        return None
    ended = collected.value("http_reqs", "count") - collected.value("lab_retries", "count")
    return int(collected.value("lab_begun", "count") - ended)
