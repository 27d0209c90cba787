"""The arrival rate at which a limit is exceeded."""

from grafana.src.queries.load import error_ratio, goodput, percentile, target_rate
from grafana.src.queries.selection import K6_WINDOW, MAX_ERROR_RATIO, MAX_SECONDS, WINDOW


def _limit_exceeded(tests: str) -> str:
    """Return 1 where a limit is exceeded, else 0."""
    slow = f"({percentile(tests, 0.95)} > bool {MAX_SECONDS})"
    failing = f"({error_ratio(tests)} > bool {MAX_ERROR_RATIO})"
    return f"({slow} + {failing} > bool 0)"


def knee(tests: str) -> str:
    """Return the lowest arrival rate with a limit exceeded, now and 5 and 10 s later."""
    lasting = f"min_over_time({_limit_exceeded(tests)}[11s:5s] offset -{K6_WINDOW}) == 1"
    rates = f"{target_rate(tests)} and on () ({lasting})"
    return f"min_over_time(({rates})[$__range:5s] @ end())"


def best_goodput(tests: str) -> str:
    return f"max_over_time(({goodput(tests)})[$__range:5s])"


def peak_generator_cpu(tests: str) -> str:
    """Return the highest CPU use of the generator during the plan."""
    return f"max_over_time(({generator_cpu()} and on () {target_rate(tests)})[$__range:5s])"


def side_cpu(side: str) -> str:
    """Return the share of a side's CPUs in use."""
    cores = f'side:cpu_cores:rate{{side="{side}"}}'
    return f'sum({cores}) / max(lab_cpus{{side="{side}"}})'


def generator_cpu() -> str:
    """Return the CPU use of the load's side or of a separate host, whichever is higher.

    GeneratorSaturated does the same. A separate host pushes its CPU metrics with service="load"
    (docker-compose.load.yml).
    """
    idle = f'rate(node_cpu_seconds_total{{service="load", mode="idle"}}[{WINDOW}])'
    host = f'label_replace(1 - avg({idle}), "side", "generator host", "", "")'
    return f"max({side_cpu('load')} or {host})"
