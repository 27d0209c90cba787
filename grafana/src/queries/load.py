"""What k6 sends, and what it gets."""

from grafana.src.queries.selection import HEAT_BOUNDS, K6_WINDOW, K6_WINDOW_SECONDS, of_load
from lab.analysis.queries import (
    DURATION,
    IN_TIME,
    ITERATIONS_DROPPED,
    REQUESTS,
    TARGET_RATE,
    VIRTUAL_USERS,
    VIRTUAL_USERS_MADE,
)


def target_rate(tests: str) -> str:
    """Arrivals/s that the plan asked for, over the last 10 s; nothing once the plan has ended."""
    return f"sum(avg_over_time({TARGET_RATE}{{{tests}}}[{K6_WINDOW}]))"


def achieved_rate(tests: str) -> str:
    """Answers/s."""
    return f"sum(rate({REQUESTS}{{{of_load(tests)}}}[{K6_WINDOW}]))"


def goodput(tests: str) -> str:
    """Successful answers/s within the response-time bound."""
    return f"sum(rate({IN_TIME}{{{of_load(tests)}}}[{K6_WINDOW}]))"


def drops(tests: str) -> str:
    """Iterations/s that found no free virtual user; 0 while users are there."""
    return f"{counted(ITERATIONS_DROPPED, tests)} or 0 * {virtual_users(tests)}"


def counted(counter: str, matchers: str, by: str = "") -> str:
    """Events/s of one of k6's counters over the last 10 s.

    rate() misses what a series begins with, and the first errors of a run are such a beginning.
    """
    now = f"last_over_time({counter}{{{matchers}}}[1d])"
    before = f"last_over_time({counter}{{{matchers}}}[1d] offset {K6_WINDOW})"
    grouped = f"sum by ({by})" if by else "sum"
    return f"{grouped}({now} - ({before} or {now} * 0)) / {K6_WINDOW_SECONDS}"


def error_ratio(tests: str) -> str:
    """Failed answers among all; nothing while nothing is answered."""
    failed = counted(REQUESTS, f'{of_load(tests)},expected_response="false"')
    answered = counted(REQUESTS, of_load(tests))
    return f"({failed} or 0 * {answered}) / ({answered} > 0)"


def errors_by_status(tests: str) -> str:
    """Failed answers/s by status; 0 is an answer that never came."""
    failed = counted(REQUESTS, f'{of_load(tests)},expected_response="false"', "status, error_code")
    return f"{failed} > 0"


def percentile(tests: str, quantile: float) -> str:
    """A percentile of the response times, in seconds; good to one bucket (10 %)."""
    rate = f"sum(rate({DURATION}{{{of_load(tests)}}}[{K6_WINDOW}]))"
    return f"histogram_quantile({quantile}, {rate})"


def heat_rows(tests: str) -> str:
    """Answers/s up to each bound, as the buckets of a classic histogram.

    Grafana 9.4 draws no native histogram, so the rows are asked for one by one.
    """
    rate = f"sum(rate({DURATION}{{{of_load(tests)}}}[{K6_WINDOW}]))"
    rows = [
        f"label_replace(histogram_count({rate}) * histogram_fraction(0, {bound}, {rate}), "
        f'"le", "{bound}", "", "")'
        for bound in HEAT_BOUNDS
    ]
    return " or ".join(rows)


def virtual_users(tests: str) -> str:
    """Virtual users that k6 has in use."""
    return f"sum(max_over_time({VIRTUAL_USERS}{{{tests}}}[{K6_WINDOW}]))"


def virtual_users_made(tests: str) -> str:
    """Virtual users that k6 has made."""
    return f"sum(max_over_time({VIRTUAL_USERS_MADE}{{{tests}}}[{K6_WINDOW}]))"
