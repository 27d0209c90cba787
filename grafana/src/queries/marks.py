"""Which runs there are, and what is marked."""

from lab.analysis.queries import SCENARIO_START, TARGET_RATE


def newest_tests(past: str) -> str:
    """Runs that pushed within `past`, the newest first."""
    return f"sort_desc(max by (testid) (last_over_time({SCENARIO_START}{{testid!=''}}[{past}])))"


def newest_planned_tests(past: str) -> str:
    """The same of those whose plan asks for a rate; a closed load has no arrival rate."""
    starts = f"max by (testid) (last_over_time({SCENARIO_START}{{testid!=''}}[{past}]))"
    planned = f"group by (testid) (last_over_time({TARGET_RATE}[{past}]))"
    return f"sort_desc({starts} and on (testid) {planned})"


RUNNING = "test:running"
SETTINGS = "lab_settings_info"


def test_starts(tests: str) -> str:
    return f"{RUNNING}{{{tests}}} unless {RUNNING} offset 5s"


def test_ends(tests: str) -> str:
    """The last 5 s in which it ran; of a killed k6 up to 10 s later."""
    return f"{RUNNING}{{{tests}}} unless {RUNNING} offset -5s"


def layer_switches() -> str:
    """Settings of the last scrape that no scrape of the 15 s before had, where there was one.

    Ranges, since a plain selector still finds what was 5 minutes ago, if Prometheus was restarted.
    """
    now = f"last_over_time({SETTINGS}[6s])"
    before = f"last_over_time({SETTINGS}[15s] offset 6s)"
    return f"({now} unless {before}) and on () {before}"
