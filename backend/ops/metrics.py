"""The backend's metrics: their names, in one place."""

from prometheus_client import Counter, Gauge, Histogram

REQUESTS = Counter("lab_http_requests_total", "Requests answered.", ["route", "method", "status"])
DURATION = Histogram(
    "lab_http_request_duration_seconds",
    "From the first line of Django to the answer's last.",
    ["route", "method"],
    # From a cached answer to the client's timeout.
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
)
BODY_BUILDS = Counter(
    "lab_body_builds_total", "Bodies made from Postgres' rows, with or without a cache.", ["route"]
)
CACHE_ANSWERS = Counter(
    "lab_cache_answers_total",
    "GETs that asked a cache of the backend: hit, miss, or unavailable.",
    ["layer", "outcome"],
)
SHED_REQUESTS = Counter(
    "lab_shed_requests_total", "Requests refused because they had waited too long (LAB_SHED)."
)
IN_FLIGHT = Gauge(
    "lab_http_requests_in_flight", "Requests being answered.", multiprocess_mode="livesum"
)
WORKER_SLOTS = Gauge(
    "lab_worker_slots",
    "Requests that the live workers can answer at once.",
    multiprocess_mode="livesum",
)
POOL_WAITS = Counter(
    "lab_db_pool_waits_total", "Requests for a database connection that had to wait (LAB_DB_POOL)."
)
POOL_WAIT_SECONDS = Counter(
    "lab_db_pool_wait_seconds_total",
    "Time spent waiting for a database connection, each wait cut to whole milliseconds.",
)
