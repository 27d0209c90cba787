"""Whole runs: those with samples in the dashboard's range."""

from grafana.src.queries.selection import load_matchers
from load_lab.metrics.queries import CHECKS, DURATION, IN_TIME, ITERATIONS_DROPPED, REQUESTS


def total(counter: str, matchers: str, by: str = "") -> str:
    """Return the final value of one of k6's counters."""
    aggregation = f"sum by ({by})" if by else "sum"
    return f"{aggregation}(max_over_time({counter}{{{matchers}}}[$__range]))"


def total_requests(tests: str, by: str = "") -> str:
    return total(REQUESTS, load_matchers(tests), by)


def total_dropped_iterations(tests: str) -> str:
    return f"{total(ITERATIONS_DROPPED, tests)} or 0 * {total_requests(tests)}"


def total_error_ratio(tests: str, by: str = "") -> str:
    failures = total(REQUESTS, f'{load_matchers(tests)},expected_response="false"', by)
    responses = total_requests(tests, by)
    return f"({failures} or 0 * {responses}) / {responses}"


def total_in_time_ratio(tests: str, by: str = "") -> str:
    return f"{total(IN_TIME, load_matchers(tests), by)} / {total_requests(tests, by)}"


def total_percentile(tests: str, quantile: float, by: str = "") -> str:
    aggregation = f"sum by ({by})" if by else "sum"
    # Prometheus 2.42 has last_over_time() only for floats; this loses the first push of a run.
    histogram = f"{aggregation}(increase({DURATION}{{{load_matchers(tests)}}}[$__range]))"
    return f"histogram_quantile({quantile}, {histogram})"


def checks(tests: str) -> str:
    """Return the share of checks that passed in each whole run; the lowest of the runs."""
    return f"min by (check) (last_over_time({CHECKS}{{{tests}}}[$__range]))"
