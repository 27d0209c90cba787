"""Whole runs: those with samples in the dashboard's range."""

from load_lab.metrics import queries
from load_lab.metrics.push import VERDICT_PERCENTILES
from load_lab.metrics.queries import (
    DURATION,
    IN_TIME,
    ITERATIONS_DROPPED,
    REQUESTS,
    VIRTUAL_USERS,
    failed,
    load,
    percentile_of,
)


def total(counter: str, matchers: str, by: str = "") -> str:
    """Return the final value of one of k6's counters."""
    return queries.total(f"max_over_time({counter}{{{matchers}}}[$__range])", by)


def total_requests(tests: str, by: str = "") -> str:
    return total(REQUESTS, load(tests), by)


def total_dropped_iterations(tests: str) -> str:
    return f"{total(ITERATIONS_DROPPED, tests)} or 0 * {total_requests(tests)}"


def total_error_ratio(tests: str, by: str = "") -> str:
    failures = total(REQUESTS, failed(tests), by)
    responses = total_requests(tests, by)
    return f"({failures} or 0 * {responses}) / {responses}"


def total_in_time_ratio(tests: str, by: str = "") -> str:
    return f"{total(IN_TIME, load(tests), by)} / {total_requests(tests, by)}"


def total_p95(tests: str) -> str:
    """Return k6's own percentile once the lab pushed it; of several runs that of the histograms."""
    of_k6 = f"max(last_over_time({VERDICT_PERCENTILES[0.95]}{{{tests}}}[$__range]))"
    one = f"count(count by (testid) (last_over_time({VIRTUAL_USERS}{{{tests}}}[$__range]))) == 1"
    return f"{of_k6} and on () ({one}) or on () {total_percentile(tests, 0.95)}"


def total_percentile(tests: str, quantile: float, by: str = "") -> str:
    # Prometheus 2.42 has last_over_time() only for floats; this loses the first push of a run.
    return percentile_of(f"increase({DURATION}{{{load(tests)}}}[$__range])", quantile, by)
