"""Requests that k6 sends, and their responses."""

from grafana.src.queries.counters import counter_rate
from grafana.src.queries.selection import HEAT_BUCKETS, MAX_SECONDS, STEP, Window
from load_lab.metrics import queries
from load_lab.metrics.queries import (
    CHECKS,
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

# The response time limit and one push: load_lab/metrics/windows.py.
_LATE_SECONDS = MAX_SECONDS + 1


def target_rate(tests: str, window: Window = STEP, offset: str = "") -> str:
    """Return planned arrivals/s; empty after the end of the plan.

    Each of several generators pushes the rate of the whole plan.
    """
    rates = f"avg_over_time({TARGET_RATE}{{{tests}}}[{window.duration}]{offset})"
    return f"sum(max by (testid) ({rates}))"


def achieved_rate(tests: str, window: Window = STEP) -> str:
    """Return responses/s."""
    return _while_running(counter_rate(REQUESTS, load(tests), window=window), tests)


def goodput(tests: str, window: Window = STEP) -> str:
    """Return successful responses/s within the response time limit."""
    return _while_running(counter_rate(IN_TIME, load(tests), window=window), tests)


def dropped_iterations(tests: str) -> str:
    """Return iterations/s that found no free virtual user; 0 while virtual users exist."""
    return _while_running(counter_rate(ITERATIONS_DROPPED, tests), tests, otherwise_zero=True)


def _while_running(expr: str, tests: str, *, otherwise_zero: bool = False) -> str:
    """Restrict an expression to the steps in which k6 pushed."""
    zero = f" or 0 * {virtual_users(tests)}" if otherwise_zero else ""
    return f"({expr}) and on () {virtual_users(tests)}{zero}"


def achieved_share(tests: str) -> str:
    """Return responses ÷ due responses, as the verdict has it; at most 1.

    A response is due one time limit and one push after its arrival. Of a plan of iterations: those
    that were not dropped.
    """
    due = target_rate(f'{tests},unit="requests"', offset=f" offset {_LATE_SECONDS}s")
    planned = target_rate(f'{tests},unit="iterations"')
    of_iterations = f"1 - ({dropped_iterations(tests)}) / on () ({planned} > 0)"
    return f"clamp_max(({achieved_rate(tests)}) / on () ({due} > 0) or ({of_iterations}), 1)"


def error_ratio(tests: str, window: Window = STEP) -> str:
    """Return the ratio of failed responses; empty without responses."""
    failures = counter_rate(REQUESTS, failed(tests), window=window)
    responses = counter_rate(REQUESTS, load(tests), window=window)
    return f"({failures} or 0 * {responses}) / ({responses} > 0)"


def errors_by_status(tests: str) -> str:
    """Return failed responses/s by status; 0 is a missing response."""
    return f"{counter_rate(REQUESTS, failed(tests), 'status, error_code')} > 0"


def percentile(tests: str, quantile: float, window: Window = STEP) -> str:
    """Return a percentile of response times in seconds, as the lab's windows have it."""
    return queries.percentile(tests, quantile, window.duration)


def percentile_of(tests: str, quantile: float, *, expected: bool) -> str:
    """Return a percentile of the successful, or of the failed responses."""
    matchers = f'{load(tests)},expected_response="{str(expected).lower()}"'
    return queries.percentile_of(rate(DURATION, matchers, STEP.duration), quantile)


def phase(name: str, tests: str) -> str:
    """Return the mean seconds that requests spend in one of k6's phases."""
    times = total(rate(f"k6_http_req_{name}_seconds", load(tests), STEP.duration))
    return f"histogram_sum({times}) / histogram_count({times})"


def checks(tests: str) -> str:
    """Return the share of each check that passed so far; k6 pushes no other."""
    return f"min by (check) (last_over_time({CHECKS}{{{tests}}}[{STEP.duration}]))"


def heat_rows(tests: str) -> str:
    """Return responses/s up to each upper bound, as the buckets of a classic histogram.

    Grafana 9.4 cannot draw native histograms, so there is one expression per row.
    """
    times = total(rate(DURATION, load(tests), STEP.duration))
    rows = [
        f"label_replace(histogram_count({times}) * histogram_fraction(0, {limit}, {times}), "
        f'"le", "{limit}", "", "")'
        for limit in HEAT_BUCKETS
    ]
    return " or ".join(rows)


def virtual_users(tests: str) -> str:
    """Return virtual users in use."""
    return f"sum(max_over_time({VIRTUAL_USERS}{{{tests}}}[{STEP.duration}]))"


def created_virtual_users(tests: str) -> str:
    """Return virtual users that k6 has created."""
    return f"sum(max_over_time({VIRTUAL_USERS_MAX}{{{tests}}}[{STEP.duration}]))"
