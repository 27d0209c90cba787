"""Label matchers of runs, and time windows."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Window:
    """A time window of k6's metrics: as a duration, and in seconds."""

    duration: str
    seconds: str


# k6 pushes every second. A window of one step, which is at least 5 s (the data source's
# timeInterval), counts each event once, however long the dashboard's range.
STEP = Window("$__interval", "($__interval_ms / 1000)")
# As the services' smallest window, to draw k6 and services in one panel.
LIKE_SERVICES = Window("20s", "20")
# Of a run's verdict: docs/measuring.md.
VERDICT = Window("5s", "5")
# Of scraped counters: a step and a scrape, at least four scrapes of 5 s.
WINDOW = "$__rate_interval"
# The limits of a run's verdict.
MAX_SECONDS = 1
MAX_ERROR_RATIO = 0.01
MIN_ACHIEVED = 0.95
# Upper bounds of the heat map's rows in seconds: from a page in memory to the client's timeout.
HEAT_BUCKETS = (
    *(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5),
    *(1, 2, 5, 10, 20, 60),
)


def variable_matcher(variable: str = "tests") -> str:
    """Return the label matchers of the runs in a variable of the dashboard."""
    return f'testid=~"${variable}"'
