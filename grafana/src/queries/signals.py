"""What the lab sees of a target ten times a second under load (load_lab/machine)."""

from grafana.src.queries.runs import RUNNING
from load_lab.metrics.push import CPU_BUSY, GAUGES, LABELLED


def seen(field: str, tests: str) -> str:
    """Return a signal, by its label if it has several values; of states and services, which are
    many, those with any.
    """
    if field in GAUGES:
        return f"max({GAUGES[field]}{{{tests}}})"
    metric, label = LABELLED[field]
    values = f"max by ({label}) ({metric}{{{tests}}})"
    return values if label == "dependency" else f"{values} > 0"


def full_share(tests: str) -> str:
    """Return the busiest process's share of one CPU, which is what Python's GIL leaves it."""
    return f"max({GAUGES['busiest']}{{{tests}}})"


def cpu_busy(side: str, tests: str) -> str:
    """Return the share of a side's CPUs in use by all programs, as the verdict has it; of a k6 that
    no `lab` started: by the side's services, 10 s late.
    """
    seen = f'max({CPU_BUSY}{{{tests},side="{side}"}})'
    cores = f'sum(side:cpu_cores:rate{{side="{side}"}}) / max(lab_cpus{{side="{side}"}})'
    used = f"max({cores} or {_GENERATOR_HOST})" if side == "load" else f"({cores})"
    unseen = f'last_over_time({CPU_BUSY}{{{tests},side="{side}"}}[1m])'
    return f"{seen} or on () ({used} and on () {RUNNING}{{{tests}}} unless on () {unseen})"


# A separate host pushes its CPU metrics with service="load" (docker-compose.load.yml).
# GeneratorSaturated does the same.
_GENERATOR_HOST = (
    'label_replace(1 - avg(rate(node_cpu_seconds_total{service="load", mode="idle"}[20s])), '
    '"side", "generator host", "", "")'
)


def slots_share(tests: str) -> str:
    """Return the share of the worker slots in use; nothing under ASGI. More requests than slots
    wait in the server.
    """
    return f"clamp_max(max({GAUGES['in_flight']}{{{tests}}}) / max(lab_worker_slots > 0), 1)"


def connections_share(tests: str) -> str:
    """Return how many of Postgres's connections are open."""
    metric, _ = LABELLED["sessions"]
    return f"sum({metric}{{{tests}}}) / max(pg_settings_max_connections)"
