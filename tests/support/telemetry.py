"""The telemetry table: the signals of each service that Prometheus must have during a real run.

A new signal is one line in TABLE. `missing` has the reason why an engine lacks it; a test prints
the reason.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from load_lab.metrics.prometheus import Prometheus

EngineName = Literal["native", "docker"]


@dataclass(frozen=True)
class Signal:
    """A query that has a result once the signal has arrived."""

    service: str
    name: str
    query: str
    missing: Mapping[EngineName, str] = field(default_factory=dict, hash=False)

    def __str__(self) -> str:
        return f"{self.service}: {self.name}"


# Services that only one engine has.
_DOCKER_ONLY: dict[EngineName, str] = {"native": "docker engine only"}
_NATIVE_ONLY: dict[EngineName, str] = {"docker": "native engine only: Alloy does it on docker"}
_ONE_ENGINE: dict[str, dict[EngineName, str]] = {
    "alloy": _DOCKER_ONLY,
    "docker-socket": _DOCKER_ONLY,
    "push-gate": {"native": "runs while LAB_BIND is no loopback"},
    "nginx-exporter": {"native": "measured as `exporters` on the native engine"},
    "exporters": _NATIVE_ONLY,
    "grafana": {"native": "runs where its program is on the PATH"},
}
SERVICES = (
    *("postgres", "redis", "toxiproxy", "backend", "nginx", "prometheus"),
    *("backend-metrics", "load"),
    *_ONE_ENGINE,
)
_SHARED_NETWORK = "processes share one network, and this service does not count what it sends"
_OWN_NAMESPACE: dict[EngineName, str] = {
    "docker": "a container sees its own network and files, whatever it is told of /proc"
}
_NO_DISK = "cAdvisor has a series once the container used the disk, which this one need not"
_NO_NETWORK: dict[str, dict[EngineName, str]] = {
    **{name: {"native": _SHARED_NETWORK} for name in SERVICES},
    "nginx": {},
    "redis": {},
    "load": {},
    "backend-metrics": {"native": _SHARED_NETWORK, "docker": "shares the backend's network"},
    "docker-socket": {"native": "docker engine only", "docker": "has no network, on purpose"},
}


def _resources() -> Iterator[Signal]:
    for service in SERVICES:
        missing, selector = _ONE_ENGINE.get(service, {}), f'{{service="{service}"}}'
        disk = {} if service in ("postgres", "prometheus") else {"docker": _NO_DISK}
        network = f"service:network_bytes:rate{selector}"
        yield Signal(service, "cpu", f"service:cpu_cores:rate{selector} >= 0", missing)
        yield Signal(service, "memory", f"service:memory_bytes{selector} > 0", missing)
        yield Signal(service, "disk", f"service:disk_bytes:rate{selector}", {**disk, **missing})
        yield Signal(service, "network", network, {**_NO_NETWORK[service], **missing})


def _signals(service: str, *signals: str) -> Iterator[Signal]:
    """Return one signal for each line: metric, optional further selectors, optional comparison."""
    for signal in signals:
        metric, _, comparison = signal.partition(" ")
        name, _, rest = metric.partition("{")
        selector = f'{name}{{service="{service}"' + (f",{rest}" if rest else "}")
        yield Signal(service, name, f"{selector} {comparison}".strip())


TABLE = (
    *_resources(),
    *_signals(
        "postgres",
        "pg_up == 1",
        'pg_stat_database_xact_commit{datname="hotel"} > 0',
        'pg_stat_database_blks_hit{datname="hotel"} > 0',
        'pg_stat_database_blks_read{datname="hotel"}',
        'pg_stat_activity_count{datname="hotel"}',
        "pg_settings_max_connections > 0",
        'pg_locks_count{datname="hotel"}',
        'lab_pg_statement_seconds_total{statement=~"SELECT.+"} > 0',
        'lab_pg_statement_calls_total{statement=~"SELECT.+"} > 0',
        "lab_pg_lock_waiters",
    ),
    *_signals(
        "redis",
        "redis_up == 1",
        "redis_keyspace_hits_total",
        "redis_keyspace_misses_total",
        "redis_memory_used_bytes > 0",
        "redis_net_input_bytes_total > 0",
        "redis_net_output_bytes_total > 0",
        "redis_connected_clients > 0",
    ),
    *_signals(
        "nginx",
        "nginx_up == 1",
        "nginx_connections_active > 0",
        "nginx_http_requests_total > 0",
        'lab_nginx_requests_total{status="200",cache="-"} > 0',
        "lab_nginx_request_seconds_count > 0",
        'lab_nginx_request_seconds_bucket{le="+Inf"} > 0',
        "lab_nginx_upstream_seconds_count > 0",
        'lab_nginx_upstream_seconds_bucket{le="+Inf"} > 0',
        "lab_nginx_sent_bytes_total > 0",
        "lab_nginx_received_bytes_total > 0",
    ),
    *_signals(
        "backend",
        'lab_http_requests_total{route="hotel_list"} > 0',
        "lab_http_request_duration_seconds_count > 0",
        "lab_http_requests_in_flight",
        'lab_body_builds_total{route="hotel_detail"} > 0',
        "lab_shed_requests_total",
        "lab_worker_slots > 0",
        'lab_workers{role="backend"} > 0',
        "lab_accept_queue_connections",
        "lab_db_pool_waits_total",
        "lab_db_pool_wait_seconds_total",
        'lab_settings_info{lab_detail="naive"}',
        'lab_cpus{side="target"} > 0',
        'lab_cpus{side="load"} > 0',
        "service:cpu_cores:limit > 0",
    ),
    *_signals(
        "host",
        'node_cpu_seconds_total{mode="idle"} > 0',
        "node_memory_MemAvailable_bytes > 0",
        "node_load1",
        "node_pressure_cpu_waiting_seconds_total",
        "node_pressure_io_waiting_seconds_total",
        "node_disk_written_bytes_total",
        'service:disk_bytes:rate{direction="write"}',
        "node_context_switches_total > 0",
    ),
    *(
        Signal("host", query, query.replace("{", '{service="host",', 1), _OWN_NAMESPACE)
        for query in (
            "node_netstat_TcpExt_ListenOverflows{}",
            "node_netstat_TcpExt_ListenDrops{}",
            'node_network_receive_bytes_total{device="lo"}',
            'node_filesystem_avail_bytes{mountpoint!=""}',
        )
    ),
    Signal("load", "requests", "k6_http_reqs_total > 0"),
    Signal("load", "times", "histogram_count(k6_http_req_duration_seconds) > 0"),
    Signal("load", "virtual users", "k6_vus > 0"),
    Signal("load", "answers in time", "k6_lab_answers_in_time_total > 0"),
    Signal("load", "running", "test:running == 1"),
    Signal("load", "its side's CPU", 'side:cpu_cores:rate{side="load"}'),
    Signal(
        "backend", "memory limit", 'service:memory_bytes:limit{service="backend"}', _DOCKER_ONLY
    ),
    # Services of the target have no quota.
    Signal(
        "prometheus",
        "throttling",
        'service:cpu_throttled:ratio{service="prometheus"}',
        _DOCKER_ONLY,
    ),
)


def required_signals(engine: EngineName) -> list[Signal]:
    """Return the signals that `engine` must have."""
    return [signal for signal in TABLE if engine not in signal.missing]


def arrivals(
    prometheus: Prometheus, signals: Iterable[Signal], *, within: float
) -> dict[Signal, float]:
    """Poll until every signal has appeared, at most `within` seconds; return the time of each."""
    start, pending, times = time.monotonic(), list(signals), dict[Signal, float]()
    while pending and time.monotonic() - start < within:
        for signal in list(pending):
            if prometheus.instant(signal.query) is not None:
                times[signal] = time.monotonic() - start
                pending.remove(signal)
        time.sleep(0.5)
    return times
