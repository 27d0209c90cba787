"""Two runs, aligned at their start."""

from grafana.src.queries.runs import RUNNING
from grafana.src.queries.selection import variable_matcher
from load_lab.metrics.push import VERDICT_PERCENTILES
from load_lab.metrics.queries import (
    DURATION,
    IN_TIME,
    REQUESTS,
    SCENARIO_START,
    VIRTUAL_USERS,
    failed,
    load,
    percentile_of,
    total,
)

# Start of both tests in the panels: midnight of 2000-01-01, UTC.
ANCHOR = 946684800
# The dashboard's "now" is in the year 2000; this range contains every sample.
_ALL_TIME = "[100y] offset -100y"
_MARGIN_SECONDS = 30
_PAIR = 'testid=~"$testid_a|$testid_b"'


def all_tests() -> str:
    """Return every run that Prometheus still stores, the newest first."""
    return f"sort_desc({_starts()})"


def other_tests() -> str:
    """Return every run but test A: the next older one first, the newer ones last."""
    of_a = f"on () group_left () max({_starts(variable_matcher('testid_a'))})"
    return f"sort_desc({_starts()} < {of_a} or ({_starts()} > {of_a}) - 1e10)"


def _starts(tests: str = "testid!=''") -> str:
    return f"max by (testid) (max_over_time({SCENARIO_START}{{{tests}}}{_ALL_TIME}))"


def start_offset(side: str) -> str:
    """Return the seconds from the anchor to the start of a test."""
    starts = f"max_over_time({SCENARIO_START}{{{variable_matcher(f'testid_{side}')}}}{_ALL_TIME})"
    # 1 without a run: PromQL rejects an empty offset, and an offset of 0.
    return f"(floor(min({starts})) - {ANCHOR}) or vector(1)"


def time_before(side: str) -> str:
    """Return a time before a test, for a link to it: in ms since 1970, as Grafana has it."""
    return f"floor(min({_starts(variable_matcher(f'testid_{side}'))}) - {_MARGIN_SECONDS}) * 1000"


def time_after(side: str) -> str:
    """Return a time after a test; k6 pushes once a second."""
    tests = variable_matcher(f"testid_{side}")
    seconds = f"max(count_over_time({VIRTUAL_USERS}{{{tests}}}{_ALL_TIME}))"
    return f"floor(min({_starts(tests)}) + {seconds} + {_MARGIN_SECONDS}) * 1000"


def limit_to_runtime(expr: str, tests: str) -> str:
    """Restrict an expression without a test id to the time in which these tests ran."""
    return f"({expr}) and on () {RUNNING}{{{tests}}}"


def align_to_start(expr: str, side: str) -> str:
    """Shift `expr` so that the test's start lies at the anchor."""
    # A subquery of one sample: a range of 1 s has that of the second before, too.
    return f"last_over_time(({expr})[999ms:1s] offset -${{start_{side}}}s)"


def _total(counter: str, matchers: str) -> str:
    return total(f"max_over_time({counter}{{{matchers}}}{_ALL_TIME})", "testid")


_REQUESTS = _total(REQUESTS, load(_PAIR))
_FAILED = _total(REQUESTS, failed(_PAIR))


def _with_side(expr: str) -> str:
    """Add the label `test`: A or B."""
    for side in "ab":
        expr = f'label_replace({expr}, "test", "{side.upper()}", "testid", "$testid_{side}")'
    return expr


REQUESTS_SO_FAR = _with_side(_REQUESTS)
IN_TIME_SO_FAR = _with_side(f"{_total(IN_TIME, load(_PAIR))} / {_REQUESTS}")
ERRORS_SO_FAR = _with_side(f"({_FAILED} or 0 * {_REQUESTS}) / {_REQUESTS}")


def percentile_so_far(quantile: float) -> str:
    """Return k6's own percentile if the lab pushed it."""
    pushed = f"max_over_time({VERDICT_PERCENTILES[quantile]}{{{_PAIR}}}{_ALL_TIME})"
    histograms = f"increase({DURATION}{{{load(_PAIR)}}}{_ALL_TIME})"
    seen = percentile_of(histograms, quantile, "testid")
    return _with_side(f"(max by (testid) ({pushed}) or {seen})")
