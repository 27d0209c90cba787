"""Two runs, aligned at their start."""

from grafana.src.queries.marks import RUNNING
from grafana.src.queries.selection import of_load
from lab.analysis.queries import DURATION, IN_TIME, REQUESTS, SCENARIO_START

# Start of both tests in the panels: midnight of 2000-01-01, UTC.
ANCHOR = 946684800
# The dashboard's "now" is in the year 2000; this range contains every sample.
_EVER = "[100y] offset -100y"
_PAIR = 'testid=~"$testid_a|$testid_b"'


def every_test() -> str:
    """Return every run that Prometheus still stores, the newest first."""
    return f"sort_desc({_starts()})"


def every_test_but_newest() -> str:
    return f"sort_desc({_starts()} < on () group_left () max({_starts()}))"


def _starts() -> str:
    return f"max by (testid) (max_over_time({SCENARIO_START}{{testid!=''}}{_EVER}))"


def since_start(side: str) -> str:
    """Return the seconds from the anchor to the start of a test."""
    starts = f'max_over_time({SCENARIO_START}{{testid=~"$testid_{side}"}}{_EVER})'
    # 1 without a run: PromQL rejects an empty offset, and an offset of 0.
    return f"(floor(max({starts})) - {ANCHOR}) or vector(1)"


def while_running(expr: str, tests: str) -> str:
    """Restrict an expression without a test id to the time in which these tests ran."""
    return f"({expr}) and on () {RUNNING}{{{tests}}}"


def from_start(expr: str, side: str) -> str:
    """Shift `expr` so that the test's start lies at the anchor."""
    return f"last_over_time(({expr})[1s:1s] offset -${{start_{side}}}s)"


def _ever(counter: str, matchers: str) -> str:
    load = of_load(f"{_PAIR}{matchers}")
    return f"sum by (testid) (max_over_time({counter}{{{load}}}{_EVER}))"


REQUESTS_SO_FAR = _ever(REQUESTS, "")
IN_TIME_SO_FAR = f"{_ever(IN_TIME, '')} / {REQUESTS_SO_FAR}"
_FAILED = _ever(REQUESTS, ',expected_response="false"')
ERRORS_SO_FAR = f"({_FAILED} or 0 * {REQUESTS_SO_FAR}) / {REQUESTS_SO_FAR}"


def percentile_so_far(quantile: float) -> str:
    histogram = f"increase({DURATION}{{{of_load(_PAIR)}}}{_EVER})"
    return f"histogram_quantile({quantile}, sum by (testid) ({histogram}))"
