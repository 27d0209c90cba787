"""The list of runs, and the annotations."""

from load_lab.metrics.queries import SCENARIO_START, TARGET_RATE


def newest_tests(past: str) -> str:
    """Return runs with samples in `past`, the newest first."""
    return f"sort_desc(max by (testid) (last_over_time({SCENARIO_START}{{testid!=''}}[{past}])))"


def newest_planned_tests(past: str) -> str:
    """Return runs with a planned rate, the newest first; a closed load has no arrival rate."""
    starts = f"max by (testid) (last_over_time({SCENARIO_START}{{testid!=''}}[{past}]))"
    planned = f"group by (testid) (last_over_time({TARGET_RATE}[{past}]))"
    return f"sort_desc({starts} and on (testid) {planned})"


RUNNING = "test:running"
SETTINGS = "lab_settings_info"
# After a longer gap, a change of settings is not a switch during the test.
_LONGEST_GAP = "5m"


def test_starts(tests: str) -> str:
    return f"{RUNNING}{{{tests}}} unless {RUNNING} offset 5s"


def test_ends(tests: str) -> str:
    """Return the last 5 s of a run; up to 10 s later if k6 was killed."""
    return f"{RUNNING}{{{tests}}} unless {RUNNING} offset -5s"


def layer_switches() -> str:
    """Return the last scrape's settings, if they differ from those of the scrape before it.

    The scrape before can be minutes old: a recreated backend has no series for 20 to 45 s.
    """
    now = f"last_over_time({SETTINGS}[6s])"
    # The time of each series' last sample; an instant selector ends at a gap.
    times = f"max_over_time(timestamp({SETTINGS})[{_LONGEST_GAP}:1s] offset 6s)"
    before = f"{times} == on () group_left () max({times})"
    return f"({now} unless ({before})) and on () ({times})"
