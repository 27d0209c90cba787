"""The list of runs, and the annotations."""

from load_lab.metrics.push import VERDICT
from load_lab.metrics.queries import SCENARIO_START, TARGET_RATE

# A choice of the variable `testid`: no run has this name.
NEWEST = "newest"


def starts(past: str) -> str:
    """Return the start of each run with samples in `past`."""
    return f"max by (testid) (last_over_time({SCENARIO_START}{{testid!=''}}[{past}]))"


def planned_starts(past: str) -> str:
    """Return the starts of runs with a planned rate; a closed load has no arrival rate."""
    return f"({starts(past)} and on (testid) last_over_time({TARGET_RATE}[{past}]))"


def choices(starts: str) -> str:
    """Return `newest` and the runs, the newest first."""
    first = f'label_replace(vector(1e12), "testid", "{NEWEST}", "", "")'
    return f"sort_desc({starts} or {first})"


def chosen(starts: str) -> str:
    """Return the runs of the variable `testid`; the newest if it names none of them."""
    named = f'last_over_time({SCENARIO_START}{{testid=~"$testid"}}[$__range])'
    return f"({starts} and on (testid) {named} or on () topk(1, {starts}))"


RUNNING = "test:running"
SETTINGS = "lab_settings_info"
# After a longer gap, a change of settings is not a switch during the test.
_LONGEST_GAP = "5m"

# Of a mark, each expression has one sample: at the first step from the event on. The step depends
# on the dashboard's range.


def test_starts(tests: str) -> str:
    return f"last_over_time({RUNNING}{{{tests}}}[$__interval]) unless {RUNNING} offset $__interval"


def test_ends(tests: str) -> str:
    """Return the last 5 s of a run; up to 10 s later if k6 was killed."""
    return f"last_over_time({RUNNING}{{{tests}}}[$__interval]) unless {RUNNING} offset -5s"


def breaks(tests: str) -> str:
    """Return when a run exceeded its limit, with the cause that was named."""
    return f'last_over_time({VERDICT}{{{tests},outcome="broke"}}[$__interval])'


def layer_switches() -> str:
    """Return settings that are not those of the last scrape before.

    That can be minutes old: a recreated backend has no series for 20 to 45 s.
    """
    now = f"last_over_time({SETTINGS}[$__interval])"
    # The time of each series' last sample; an instant selector ends at a gap.
    times = f"max_over_time(timestamp({SETTINGS})[{_LONGEST_GAP}:1s] offset $__interval)"
    before = f"{times} == on () group_left () max({times})"
    return f"({now} unless ({before})) and on () ({times})"


def switches_during(tests: str) -> str:
    """Return the switches while these runs ran."""
    return f"({layer_switches()}) and on () last_over_time({RUNNING}{{{tests}}}[$__interval])"
