"""Two runs, aligned at their start."""

from grafana.src.queries.runs import RUNNING
from load_lab.metrics.queries import (
    DURATION,
    IN_TIME,
    REQUESTS,
    SCENARIO_START,
    failed,
    load,
    percentile_of,
    total,
)

# Start of both tests in the panels: midnight of 2000-01-01, UTC.
ANCHOR = 946684800
# The dashboard's "now" is in the year 2000; this range contains every sample.
_ALL_TIME = "[100y] offset -100y"
_PAIR = 'testid=~"$testid_a|$testid_b"'


def all_tests() -> str:
    """Return every run that Prometheus still stores, the newest first."""
    return f"sort_desc({_starts()})"


def older_tests() -> str:
    return f"sort_desc({_starts()} < on () group_left () max({_starts()}))"


def _starts() -> str:
    return f"max by (testid) (max_over_time({SCENARIO_START}{{testid!=''}}{_ALL_TIME}))"


def start_offset(side: str) -> str:
    """Return the seconds from the anchor to the start of a test."""
    starts = f'max_over_time({SCENARIO_START}{{testid=~"$testid_{side}"}}{_ALL_TIME})'
    # 1 without a run: PromQL rejects an empty offset, and an offset of 0.
    return f"(floor(min({starts})) - {ANCHOR}) or vector(1)"


def limit_to_runtime(expr: str, tests: str) -> str:
    """Restrict an expression without a test id to the time in which these tests ran."""
    return f"({expr}) and on () {RUNNING}{{{tests}}}"


def align_to_start(expr: str, side: str) -> str:
    """Shift `expr` so that the test's start lies at the anchor."""
    return f"last_over_time(({expr})[1s:1s] offset -${{start_{side}}}s)"


def _total(counter: str, matchers: str) -> str:
    return total(f"max_over_time({counter}{{{matchers}}}{_ALL_TIME})", "testid")


REQUESTS_SO_FAR = _total(REQUESTS, load(_PAIR))
IN_TIME_SO_FAR = f"{_total(IN_TIME, load(_PAIR))} / {REQUESTS_SO_FAR}"
_FAILED = _total(REQUESTS, failed(_PAIR))
ERRORS_SO_FAR = f"({_FAILED} or 0 * {REQUESTS_SO_FAR}) / {REQUESTS_SO_FAR}"


def percentile_so_far(quantile: float) -> str:
    histograms = f"increase({DURATION}{{{load(_PAIR)}}}{_ALL_TIME})"
    return percentile_of(histograms, quantile, "testid")
