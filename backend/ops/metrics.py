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
IN_FLIGHT = Gauge(
    "lab_http_requests_in_flight", "Requests being answered.", multiprocess_mode="livesum"
)
