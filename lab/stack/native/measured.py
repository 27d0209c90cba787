"""Which processes are which service, and what Prometheus scrapes."""

import re
from typing import Any

from lab.settings import LOOPBACK, Settings
from lab.stack.native.exporters import MEASURED
from lab.stack.native.service import Service

# Every k6 of this machine: by hand or by the lab, it is load.
_K6 = {"name": "load", "exe": ["k6"], "cmdline": [r"(^|\s)run(\s|$)"]}


def process_groups(services: list[Service]) -> dict[str, Any]:
    """The configuration of process-exporter: a group per service, children with their parents.

    https://github.com/ncabatoff/process-exporter#using-a-config-file
    """
    groups = [
        {"name": service.group or service.name, "cmdline": [_whole(service.mark)]}
        for service in services
    ]
    return {"process_names": [*groups, _K6]}


def scrape_targets(services: list[Service], settings: Settings) -> list[dict[str, Any]]:
    """Prometheus' targets; `instance` says which service answered, `service` what it measures."""
    ports = {
        "backend-metrics": ("backend", settings.LAB_METRICS_PORT),
        "prometheus": ("prometheus", settings.LAB_PROMETHEUS_PORT),
    }
    ports |= {s.name: (MEASURED[s.name], s.port) for s in services if s.name in MEASURED}
    return [
        {
            "targets": [f"{LOOPBACK}:{port}"],
            "labels": {"service": service, "instance": instance},
        }
        for instance, (service, port) in ports.items()
    ]


def _whole(mark: str) -> str:
    """A pattern for `mark`, not followed by more: one stack's folder may lie in another's."""
    return rf"(^|\s){re.escape(mark)}(\s|$)"
