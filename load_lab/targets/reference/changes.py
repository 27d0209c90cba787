"""What can be changed of the hotel API, by the causes that it proves. Pure."""

from collections.abc import Iterator
from dataclasses import replace

from load_lab.settings import Settings
from load_lab.targets.change import DOUBLED, Change, changed_options
from load_lab.targets.file import Texts

_NO_FLUSH = Change(
    "synchronous_commit off, for this measurement",
    statements=("ALTER SYSTEM SET synchronous_commit = off", "SELECT pg_reload_conf()"),
    undo=("ALTER SYSTEM RESET synchronous_commit", "SELECT pg_reload_conf()"),
)
_RANDOM_ROWS = Change("the same load on random rows", route="random_row_lock")
_MAX_CONNECTIONS = "Postgres's max_connections"
_RESTART_OF_POSTGRES = (
    "It restarts Postgres, which ends the connections of other programs, and the locks that they "
    "hold",
    "Repeat the load, and see in pg_stat_activity meanwhile which programs have connections; end "
    "those, and measure again",
)
# They ignore LAB_WORKERS.
_ONE_PROCESS = ("daphne",)
# What has quick code.
_CODE = {"detail": "LAB_DETAIL", "booking": "LAB_BOOKING"}


def reference_changes(
    settings: Settings, scenario: str, route: str | None = None
) -> dict[str, Change]:
    """Return the changes for a load, by the names that causes have in diagnosis/causes.py."""
    now = settings.as_env()
    changes = {cause: changed_options(now, entry) for cause, entry in _entries(settings, scenario)}
    changes[_MAX_CONNECTIONS] = replace(changes[_MAX_CONNECTIONS], ends=_RESTART_OF_POSTGRES)
    changes["flush of Postgres's write-ahead log"] = _NO_FLUSH
    # Another route may wait for another lock.
    if (scenario, route) == ("workbench", "row_lock"):
        changes["row locks"] = _RANDOM_ROWS
    return changes


def _entries(settings: Settings, scenario: str) -> Iterator[tuple[str, Texts]]:
    """Yield what changes settings, as [prove] of a target's file does."""
    yield "rate limit (429)", {"LAB_NGINX_POST_RATE": DOUBLED}
    yield _MAX_CONNECTIONS, {"LAB_DB_MAX_CONNECTIONS": DOUBLED}
    if settings.worker_slots:
        threads = settings.LAB_SERVER == "gunicorn-gthread"
        yield "worker slots", {"LAB_THREADS" if threads else "LAB_WORKERS": DOUBLED}
    if settings.LAB_SERVER not in _ONE_PROCESS:
        half = max(settings.LAB_THREADS // 2, 1)
        yield "one CPU per process (Python's GIL)", {"LAB_WORKERS": DOUBLED, "LAB_THREADS": half}
    if settings.pool_size:
        yield "connection pool", {"LAB_DB_POOL": DOUBLED}
    if settings.LAB_LATENCY_MS > 1:
        half = settings.LAB_LATENCY_MS // 2
        yield "network delay × round trips to Postgres", {"LAB_LATENCY_MS": half}
    code = _CODE.get(scenario)
    if code and settings.as_env()[code] == "naive":
        yield "CPU of the backend", {code: "fast"}
