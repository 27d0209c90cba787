"""The services that measure, and what they measure; all others of a stack are the target's."""

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    # The exporter, which imports this, starts without pydantic.
    from load_lab.settings import Settings

Side = Literal["target", "load"]

# The service whose metrics each exporter of the native engine exports (label `service`).
MONITORED_SERVICES = {
    "node-exporter": "host",
    "process-exporter": "processes",
    "postgres-exporter": "postgres",
    "redis-exporter": "redis",
    "nginx-exporter": "nginx",
    "mtail": "nginx",
}
_MEASURING = {
    # Of both engines.
    *("prometheus", "grafana", "backend-metrics", "push-gate", "nginx-exporter"),
    # The native engine's.
    *MONITORED_SERVICES,
    # Docker's.
    *("alloy", "docker-socket"),
}


def has_target(settings: "Settings") -> bool:
    """Return whether a stack has a target of its own, whose CPU and memory a service reads."""
    return settings.LAB_REFERENCE_APP == "on"


def side_of(service: str) -> Side:
    """Return on whose CPUs a service runs."""
    return "load" if service in _MEASURING else "target"


def measured_group(service: str) -> str:
    """Return the service's name in measurements: the exporters share one."""
    return "exporters" if service in MONITORED_SERVICES else service
