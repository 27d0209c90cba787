"""The exporters of the native engine's services, each a separate process.

They use the ports from LAB_EXPORTERS_PORT on, in this order.
"""

import sys
from typing import Any

from load_lab.paths import State, lab_file
from load_lab.settings import LOOPBACK, Settings
from load_lab.stack.measuring_services import MONITORED_SERVICES
from load_lab.stack.native.program_paths import library_env, require
from load_lab.stack.native.services import redis_service
from load_lab.stack.native.services.service import Service

# Collectors for the host: other programs' CPU use, and how long work waited for the CPUs.
_HOST = (
    *("cpu", "diskstats", "filesystem", "loadavg", "meminfo", "netdev", "netstat", "pressure"),
    *("stat", "uname", "vmstat"),
)


def exporters(settings: Settings, state: State) -> list[Service]:
    """Return every exporter; they are independent of each other."""
    builders = (_node, _process, _postgres, _redis, _nginx, _access_log)
    ports = range(settings.LAB_EXPORTERS_PORT, 65536)
    return [build(settings, state, port) for build, port in zip(builders, ports, strict=False)]


def _exporter(name: str, port: int, argv: list[str], env: dict[str, str] | None = None) -> Service:
    address = f"{LOOPBACK}:{port}"
    program, *flags = argv
    return Service(
        name=name,
        argv=[str(require(program)), *(flag.format(address=address) for flag in flags)],
        port=port,
        url=f"http://{address}/metrics",
        env={**library_env(), **(env or {})},
    )


def _node(_settings: Settings, _state: State, port: int) -> Service:
    flags = [
        "--web.listen-address={address}",
        "--collector.disable-defaults",
        *(f"--collector.{name}" for name in _HOST),
        # The services communicate over the loopback, which is excluded by default.
        "--collector.netdev.device-exclude=^$",
    ]
    return _exporter("node-exporter", port, ["prometheus-node-exporter", *flags])


def _process(_settings: Settings, state: State, port: int) -> Service:
    module = "load_lab.stack.native.process_exporter"
    return Service(
        name="process-exporter",
        argv=[sys.executable, "-m", module, LOOPBACK, str(port), str(state.base)],
        port=port,
        url=f"http://{LOOPBACK}:{port}/metrics",
    )


def _postgres(settings: Settings, state: State, port: int) -> Service:
    flags = [
        "--web.listen-address={address}",
        f"--extend.query-path={lab_file('postgres/exporter-queries.yml')}",
    ]
    env = {
        "DATA_SOURCE_URI": f"{LOOPBACK}:{settings.LAB_POSTGRES_PORT}/postgres?sslmode=disable",
        "DATA_SOURCE_USER": "lab_monitor",
        "DATA_SOURCE_PASS_FILE": str(state.secrets / "monitor_password"),
    }
    return _exporter("postgres-exporter", port, ["prometheus-postgres-exporter", *flags], env)


def _redis(settings: Settings, state: State, port: int) -> Service:
    flags = [
        "--web.listen-address={address}",
        f"--redis.addr={redis_service.url(settings)}",
        # Written by load_lab/stack/native/services/redis_service.py.
        f"--redis.password-file={state.secrets / 'redis-exporter.json'}",
    ]
    return _exporter("redis-exporter", port, ["prometheus-redis-exporter", *flags])


def _nginx(settings: Settings, _state: State, port: int) -> Service:
    flags = [
        "--web.listen-address={address}",
        f"--nginx.scrape-uri={settings.nginx_status_url}/stub_status",
        # Without retries, it exits when Nginx does not respond at once. Defaults: 0, 5s.
        *("--nginx.retries=60", "--nginx.retry-interval=1s"),
    ]
    return _exporter("nginx-exporter", port, ["prometheus-nginx-exporter", *flags])


def _access_log(_settings: Settings, state: State, port: int) -> Service:
    argv = [
        str(require("mtail")),
        *("--address", LOOPBACK, "--port", str(port)),
        *("--progs", str(lab_file("nginx/access-log.mtail"))),
        *("--logs", str(state.logs / "nginx-access.log")),
        *("--emit_prog_label=false", "--logtostderr"),
    ]
    return Service(
        name="mtail",
        argv=argv,
        port=port,
        url=f"http://{LOOPBACK}:{port}/metrics",
        env=library_env(),
    )


def scrape_targets(services: list[Service], settings: Settings) -> list[dict[str, Any]]:
    """Return Prometheus's targets; `instance` is the service that responds, `service` the measured
    one.
    """
    measured = MONITORED_SERVICES | {"backend-metrics": "backend", "prometheus": "prometheus"}
    ports = {
        s.name: (measured[s.name], s.port) for s in services if s.enabled and s.name in measured
    }
    return [
        {
            "targets": [f"{LOOPBACK}:{port}"],
            "labels": {"service": service, "instance": instance},
        }
        for instance, (service, port) in ports.items()
    ]
