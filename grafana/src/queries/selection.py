"""Which runs, over which windows."""

from lab.analysis.queries import LOAD_ONLY

# Of a moving figure: four scrapes of 5 s, as the recorded rates have it.
WINDOW = "20s"
# k6 pushes every second, so that its own figures can follow a ramp more closely.
K6_WINDOW_SECONDS = 10
K6_WINDOW = f"{K6_WINDOW_SECONDS}s"
# The limits of the verdict: docs/measuring.md.
BOUND_SECONDS = 1
BOUND_ERRORS = 0.01
# Upper bounds of the heat map's rows in seconds: from a page out of memory to the client's timeout.
HEAT_BOUNDS = (
    *(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5),
    *(1, 2, 5, 10, 20, 60),
)


def chosen(variable: str = "testid") -> str:
    """The label matchers of the runs that a variable of the dashboard holds."""
    return f'testid=~"${variable}"'


def of_load(tests: str) -> str:
    """The same, without what setup() asked for."""
    return f"{tests},{LOAD_ONLY}"
