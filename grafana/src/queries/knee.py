"""The arrival rate at which a limit is exceeded."""

from grafana.src.queries.counters import counter_rate
from grafana.src.queries.load import error_ratio, percentile, target_rate
from grafana.src.queries.selection import (
    MAX_ERROR_RATIO,
    MAX_SECONDS,
    VERDICT,
    Window,
)
from grafana.src.queries.signals import cpu_busy
from load_lab.metrics import push
from load_lab.metrics.queries import IN_TIME, load

# A subquery has no step of the dashboard.
_WINDOW = Window("10s", "10")


def _limit_exceeded(tests: str) -> str:
    """Return 1 where a limit is exceeded, else 0."""
    slow = f"({percentile(tests, 0.95, _WINDOW)} > bool {MAX_SECONDS})"
    failing = f"({error_ratio(tests, _WINDOW)} > bool {MAX_ERROR_RATIO})"
    return f"({slow} + {failing} > bool 0)"


def broke_at(tests: str) -> str:
    """Return the rate of the verdict; before there is one: the lowest arrival rate with a limit
    exceeded, now and 5 and 10 s later.
    """
    verdict = f"last_over_time({push.VERDICT}{{{tests}}}[$__range] @ end())"
    lasting = f"min_over_time({_limit_exceeded(tests)}[11s:5s] offset -{_WINDOW.duration}) == 1"
    rates = f"{target_rate(tests, _WINDOW)} and on () ({lasting})"
    seen = f"min_over_time(({rates})[$__range:5s] @ end())"
    return f"max({verdict} > 0) or on () ({seen} unless on () {verdict})"


def best_goodput(tests: str) -> str:
    """Return the highest goodput of any window of the verdict."""
    goodput = counter_rate(IN_TIME, load(tests), window=VERDICT)
    seen = f"max_over_time(({goodput})[$__range:1s])"
    return _of_verdict(push.VERDICT_GOODPUT, tests, seen)


def generator_cpu(tests: str) -> str:
    """Return the CPU use of the generator at the break; without one its highest of any 5 s."""
    mean = f"avg_over_time(({cpu_busy('load', tests)})[{VERDICT.duration}:1s])"
    seen = f"max_over_time(({mean})[$__range:1s])"
    return _of_verdict(push.VERDICT_GENERATOR_CPU, tests, seen)


def _of_verdict(metric: str, tests: str, otherwise: str) -> str:
    return f"max(last_over_time({metric}{{{tests}}}[$__range])) or on () {otherwise}"
