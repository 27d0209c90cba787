"""Requests that k6 sends, and their responses."""

from grafana.src.queries.selection import HEAT_BUCKETS, K6_WINDOW, K6_WINDOW_SECONDS
from load_lab.metrics import queries
from load_lab.metrics.queries import (
    DURATION,
    IN_TIME,
    ITERATIONS_DROPPED,
    REQUESTS,
    TARGET_RATE,
    VIRTUAL_USERS,
    VIRTUAL_USERS_MAX,
    failed,
    load,
    rate,
    total,
)


def target_rate(tests: str) -> str:
    """Return planned arrivals/s, over the last 10 s; empty after the end of the plan.

    Each of several generators pushes the rate of the whole plan.
    """
    return f"sum(max by (testid) (avg_over_time({TARGET_RATE}{{{tests}}}[{K6_WINDOW}])))"


def achieved_rate(tests: str) -> str:
    """Return responses/s."""
    return total(rate(REQUESTS, load(tests), K6_WINDOW))


def goodput(tests: str) -> str:
    """Return successful responses/s within the response time limit."""
    return total(rate(IN_TIME, load(tests), K6_WINDOW))


def dropped_iterations(tests: str) -> str:
    """Return iterations/s that found no free virtual user; 0 while virtual users exist."""
    return f"{counter_rate(ITERATIONS_DROPPED, tests)} or 0 * {virtual_users(tests)}"


def counter_rate(counter: str, matchers: str, by: str = "") -> str:
    """Return events/s of one of k6's counters over the last 10 s.

    rate() ignores a series' first value, and the first errors of a run are such a value.
    """
    now = f"last_over_time({counter}{{{matchers}}}[1d])"
    before = f"last_over_time({counter}{{{matchers}}}[1d] offset {K6_WINDOW})"
    return f"{total(f'{now} - ({before} or {now} * 0)', by)} / {K6_WINDOW_SECONDS}"


def error_ratio(tests: str) -> str:
    """Return the ratio of failed responses; empty without responses."""
    failures = counter_rate(REQUESTS, failed(tests))
    responses = counter_rate(REQUESTS, load(tests))
    return f"({failures} or 0 * {responses}) / ({responses} > 0)"


def errors_by_status(tests: str) -> str:
    """Return failed responses/s by status; 0 is a missing response."""
    return f"{counter_rate(REQUESTS, failed(tests), 'status, error_code')} > 0"


def percentile(tests: str, quantile: float) -> str:
    """Return a percentile of response times in seconds, as the lab's windows have it."""
    return queries.percentile(tests, quantile, K6_WINDOW)


def heat_rows(tests: str) -> str:
    """Return responses/s up to each upper bound, as the buckets of a classic histogram.

    Grafana 9.4 cannot draw native histograms, so there is one expression per row.
    """
    times = total(rate(DURATION, load(tests), K6_WINDOW))
    rows = [
        f"label_replace(histogram_count({times}) * histogram_fraction(0, {limit}, {times}), "
        f'"le", "{limit}", "", "")'
        for limit in HEAT_BUCKETS
    ]
    return " or ".join(rows)


def virtual_users(tests: str) -> str:
    """Return virtual users in use."""
    return f"sum(max_over_time({VIRTUAL_USERS}{{{tests}}}[{K6_WINDOW}]))"


def created_virtual_users(tests: str) -> str:
    """Return virtual users that k6 has created."""
    return f"sum(max_over_time({VIRTUAL_USERS_MAX}{{{tests}}}[{K6_WINDOW}]))"
