"""Label matchers of runs, and time windows."""

# For rates: four scrapes of 5 s, as in the recorded rates.
WINDOW = "20s"
# k6 pushes every second, so its metrics can follow a ramp more closely.
K6_WINDOW_SECONDS = 10
K6_WINDOW = f"{K6_WINDOW_SECONDS}s"
# The limits of a run's verdict: docs/measuring.md.
MAX_SECONDS = 1
MAX_ERROR_RATIO = 0.01
# Upper bounds of the heat map's rows in seconds: from a page in memory to the client's timeout.
HEAT_BUCKETS = (
    *(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5),
    *(1, 2, 5, 10, 20, 60),
)


def variable_matcher(variable: str = "testid") -> str:
    """Return the label matchers of the runs in a variable of the dashboard."""
    return f'testid=~"${variable}"'
