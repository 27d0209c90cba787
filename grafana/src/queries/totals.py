"""Whole runs: those with samples in the dashboard's range."""

from grafana.src.queries.selection import of_load
from lab.analysis.queries import (
    CHECKS,
    DURATION,
    IN_TIME,
    ITERATIONS_DROPPED,
    REQUESTS,
)


def total(counter: str, matchers: str, by: str = "") -> str:
    """Return the final value of one of k6's counters."""
    grouped = f"sum by ({by})" if by else "sum"
    return f"{grouped}(max_over_time({counter}{{{matchers}}}[$__range]))"


def total_requests(tests: str, by: str = "") -> str:
    return total(REQUESTS, of_load(tests), by)


def total_drops(tests: str) -> str:
    return f"{total(ITERATIONS_DROPPED, tests)} or 0 * {total_requests(tests)}"


def total_error_ratio(tests: str, by: str = "") -> str:
    failed = total(REQUESTS, f'{of_load(tests)},expected_response="false"', by)
    answered = total_requests(tests, by)
    return f"({failed} or 0 * {answered}) / {answered}"


def total_in_time_ratio(tests: str, by: str = "") -> str:
    return f"{total(IN_TIME, of_load(tests), by)} / {total_requests(tests, by)}"


def total_percentile(tests: str, quantile: float, by: str = "") -> str:
    grouped = f"sum by ({by})" if by else "sum"
    # Prometheus 2.42 has last_over_time() only for floats; this loses the first push of a run.
    histogram = f"{grouped}(increase({DURATION}{{{of_load(tests)}}}[$__range]))"
    return f"histogram_quantile({quantile}, {histogram})"


def checks(tests: str) -> str:
    """Return the share of checks that passed in each whole run; the lowest of the runs."""
    return f"min by (check) (last_over_time({CHECKS}{{{tests}}}[$__range]))"
