"""The services that measure; all others of a stack are the target's."""

from typing import Literal

Side = Literal["target", "load"]

_MEASURING = {
    # Of both engines.
    *("prometheus", "grafana", "backend-metrics", "push-gate", "nginx-exporter"),
    # The native engine's.
    *("node-exporter", "process-exporter", "postgres-exporter", "redis-exporter", "mtail"),
    # Docker's.
    *("alloy", "docker-socket"),
}


def side_of(service: str) -> Side:
    """Return on whose CPUs a service runs."""
    return "load" if service in _MEASURING else "target"
