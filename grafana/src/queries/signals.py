"""What the lab sees of a target ten times a second under load (load_lab/machine)."""

from load_lab.metrics.push import CAUSE, GAUGES, LABELLED


def seen(field: str, tests: str) -> str:
    """Return a signal, by its label if it has several values."""
    if field in GAUGES:
        return f"max by (testid) ({GAUGES[field]}{{{tests}}})"
    metric, label = LABELLED[field]
    return f"max by ({label}) ({metric}{{{tests}}})"


def full_share(tests: str) -> str:
    """Return the busiest process's share of one CPU, which is what Python's GIL leaves it."""
    return f"max({GAUGES['busiest']}{{{tests}}})"


def cpu_share(side: str) -> str:
    """Return how much of a side's CPUs its services use."""
    cores = f'side:cpu_cores:rate{{side="{side}"}}'
    return f'max({cores}) / max(lab_cpus{{side="{side}"}})'


def slots_share(tests: str) -> str:
    """Return the requests in the server in relation to its worker slots; nothing under ASGI."""
    return f"max({GAUGES['in_flight']}{{{tests}}}) / max(lab_worker_slots > 0)"


def connections_share(tests: str) -> str:
    """Return how many of Postgres's connections are open."""
    metric, _ = LABELLED["sessions"]
    return f"sum({metric}{{{tests}}}) / max(pg_settings_max_connections)"


def causes(tests: str) -> str:
    """Return when a run exceeded its limit, with the cause that was named."""
    return f"{CAUSE}{{{tests}}}"
