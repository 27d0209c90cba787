"""Running services without CPU or memory series in Prometheus.

A collector fails silently: cAdvisor without the names of the containers exports series of nothing,
and every service stays healthy.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from load_lab.metrics.prometheus import Prometheus, PrometheusUnavailable
from load_lab.settings import Settings
from load_lab.stack.engine import ServiceStatus
from load_lab.stack.measuring_services import has_target

# The series of a new container: cAdvisor looks for containers every 5 s, scrapes take 5 s more.
_PATIENCE_SECONDS = 15
_TIMEOUT_SECONDS = 3
# Programs that read CPU and memory of the services, of the docker and the native engine.
_COLLECTORS = {"alloy", "process-exporter"}
# The metric of the docker and of the native engine. Recorded series arrive later.
_CPU = ("container_cpu_usage_seconds_total", "lab_process_cpu_seconds_total")
_MEMORY = ("container_memory_working_set_bytes", "lab_process_memory_bytes")


@dataclass(frozen=True)
class MissingSeries:
    """Names of the services that lack a series; `problem` when Prometheus does not answer, and
    when no collector runs.
    """

    cpu: tuple[str, ...] = ()
    memory: tuple[str, ...] = ()
    problem: str = ""

    def __bool__(self) -> bool:
        return bool(self.cpu or self.memory or self.problem)

    @property
    def text(self) -> str:
        """Say what is missing, and where to look."""
        if self.problem or not self:
            return self.problem
        parts = [
            f"no {name} series of {', '.join(services)}"
            for name, services in (("CPU", self.cpu), ("memory", self.memory))
            if services
        ]
        return (
            f"Prometheus has {' and '.join(parts)}: the dashboards stay empty there. "
            "See docs/alerts.md#servicewithoutseries."
        )


def find_missing_series(services: Iterable[ServiceStatus], settings: Settings) -> MissingSeries:
    """Return the running services that Prometheus has no CPU or no memory series of, now."""
    running = [service for service in services if service.state == "running"]
    if not _COLLECTORS & {service.name for service in running}:
        if not has_target(settings):
            return MissingSeries()
        collectors = " or ".join(sorted(_COLLECTORS))
        return MissingSeries(problem=f"Nothing reads CPU and memory: no {collectors} is running.")
    prometheus = Prometheus(settings.prometheus_url, _TIMEOUT_SECONDS)
    names = {service.group or service.name for service in running}
    try:
        cpu = names - _measured(prometheus, *_CPU)
        memory = names - _measured(prometheus, *_MEMORY)
    except PrometheusUnavailable as error:
        return MissingSeries(problem=str(error))
    return MissingSeries(tuple(sorted(cpu)), tuple(sorted(memory)))


def _measured(prometheus: Prometheus, container_metric: str, process_metric: str) -> set[str]:
    containers = prometheus.instant_by_label(f'{container_metric}{{service!=""}}', "service")
    return {*containers, *prometheus.instant_by_label(process_metric, "group")}


def wait_for_series(services: Iterable[ServiceStatus], settings: Settings) -> MissingSeries:
    """Return what is still missing some seconds after the start of the services."""
    poll = Retrying(
        retry=retry_if_result(bool),
        wait=wait_fixed(0.5),
        stop=stop_after_delay(_PATIENCE_SECONDS),
        retry_error_callback=lambda state: state.outcome and state.outcome.result(),
    )
    return poll(find_missing_series, list(services), settings)
