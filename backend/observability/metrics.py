"""The backend's metrics, with their names in one place."""

from contextlib import suppress
from pathlib import Path

from config import env
from prometheus_client import Counter, Gauge, Histogram
from prometheus_client.multiprocess import mark_process_dead

REQUESTS = Counter("lab_http_requests_total", "Completed requests.", ["route", "method", "status"])
DURATION = Histogram(
    "lab_http_request_duration_seconds",
    "Duration of a request in Django, in seconds.",
    ["route", "method"],
    # From a cached response to the client's timeout.
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
)
BODY_BUILDS = Counter(
    "lab_body_builds_total",
    "Bodies rendered from Postgres's rows, with or without a cache.",
    ["route"],
)
CACHE_ANSWERS = Counter(
    "lab_cache_answers_total",
    "GETs that looked up a cache of the backend: hit, miss, or unavailable.",
    ["layer", "outcome"],
)
SHED_REQUESTS = Counter(
    "lab_shed_requests_total",
    "Requests rejected because they waited too long (LAB_SHED), or would wait too long for a page.",
)
IN_FLIGHT = Gauge(
    "lab_http_requests_in_flight", "Requests in progress.", multiprocess_mode="livesum"
)
WORKER_SLOTS = Gauge(
    "lab_worker_slots",
    "Requests that the live workers can process at once; 0 with ASGI, which has no limit.",
    multiprocess_mode="livesum",
)
LIVE_PUSHES = Counter(
    "lab_live_pushes_total",
    "Bookings pushed to the clients of their hotel: sent or failed (LAB_WEBSOCKETS).",
    ["outcome"],
)
LIVE_CONNECTIONS = Gauge(
    "lab_live_connections",
    "WebSockets subscribed to a hotel (LAB_WEBSOCKETS).",
    multiprocess_mode="livesum",
)
WORKERS = Gauge(
    "lab_workers",
    "Live worker processes of the backend or of the second server.",
    ["role"],
    multiprocess_mode="livesum",
)
POOL_WAITS = Counter(
    "lab_db_pool_waits_total", "Requests for a database connection that had to wait (LAB_DB_POOL)."
)
POOL_WAIT_SECONDS = Counter(
    "lab_db_pool_wait_seconds_total",
    "Time spent waiting for a database connection; each wait is rounded down to milliseconds.",
)


def register_worker() -> None:
    """Count this process, and remove processes that have exited from every sum.

    Not every server has a hook for exits, so each new worker removes the exited ones. They used the
    same folder, so they ran on the same machine.
    """
    WORKERS.labels(env.role()).set(1)
    folder = env.metrics_folder()
    for file in folder.glob("gauge_live*.db") if folder else ():
        pid = int(file.stem.rpartition("_")[2])
        if not Path("/proc", str(pid)).exists():
            # Workers start at the same time: another one may have been faster.
            with suppress(FileNotFoundError):
                mark_process_dead(pid)  # type: ignore[no-untyped-call]
