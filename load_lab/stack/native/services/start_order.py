"""The services of the native engine in the order of their start: how each is started and pinned."""

import os
import pwd
from dataclasses import replace

from load_lab.paths import State
from load_lab.settings import LOOPBACK, Settings
from load_lab.stack.native.program_paths import library_env, require
from load_lab.stack.native.services import grafana, metrics_ingress, redis_service, toxiproxy
from load_lab.stack.native.services.exporters import exporters
from load_lab.stack.native.services.service import Service
from load_lab.stack.reference import DATABASE, ROLE

# What runs without the reference app (LAB_REFERENCE_APP=off).
_MEASURING_SERVICES = {
    *("prometheus", "push-gate", "node-exporter", "process-exporter", "grafana"),
}


def services(settings: Settings, state: State) -> list[Service]:
    """Return every service, in the order of their start."""
    builders = (
        *(_postgres, redis_service.service, toxiproxy.service),
        *(
            _backend,
            _backend_metrics,
            _nginx,
            _second_server,
            _worker,
            _prometheus,
            metrics_ingress.service,
        ),
    )
    all_services = [*(build(settings, state) for build in builders), *exporters(settings, state)]
    program = grafana.find_installation()
    if program:
        all_services.append(grafana.service(settings, state, program))
    if settings.LAB_REFERENCE_APP == "on":
        return all_services
    return [
        each if each.name in _MEASURING_SERVICES else replace(each, enabled=False)
        for each in all_services
    ]


def start_groups(all_services: list[Service]) -> list[list[Service]]:
    """Return the groups that are started together: each service of the target alone, then all
    services that measure it.
    """
    target = [service for service in all_services if service.side == "target"]
    return [*([service] for service in target), [s for s in all_services if s.side == "load"]]


def backend_env(settings: Settings, state: State) -> dict[str, str]:
    """Return the environment of the backend and its management commands."""
    return {
        # Has the settings, and is read again when the server reloads.
        "BACKEND_SETTINGS_FILE": str(state.settings),
        "BACKEND_SECRETS_DIR": str(state.secrets),
        "PGHOST": LOOPBACK,
        "PGPORT": str(settings.LAB_POSTGRES_PORT),
        "PGDATABASE": DATABASE,
        "PGUSER": ROLE,
        "BACKEND_REDIS_URL": f"{redis_service.url(settings)}/0",
        "BACKEND_BIND": f"{LOOPBACK}:{settings.LAB_BACKEND_PORT}",
        "BACKEND_BESIDE_BIND": f"{LOOPBACK}:{settings.LAB_SECOND_SERVER_PORT}",
        "BACKEND_METRICS_BIND": f"{LOOPBACK}:{settings.LAB_METRICS_PORT}",
        "BACKEND_ALLOWED_HOSTS": "*",
        "BACKEND_METRICS_DIR": str(state.run / "metrics"),
        "PATH": f"{state.python.parent}:{os.environ.get('PATH', '')}",
        "PYTHONUNBUFFERED": "1",
    }


def postgres_user() -> str | None:
    """Return the user that Postgres runs as; None for the current user, which is never root."""
    if os.getuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


def _postgres(settings: Settings, state: State) -> Service:
    options = {
        "config_file": state.postgres_configuration,
        "listen_addresses": LOOPBACK,
        "port": settings.LAB_POSTGRES_PORT,
        "unix_socket_directories": "",
    }
    flags = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
    return Service(
        name="postgres",
        argv=[str(require("postgres")), "-D", str(state.postgres), *flags],
        port=settings.LAB_POSTGRES_PORT,
        url=f"postgresql://{ROLE}@{LOOPBACK}:{settings.LAB_POSTGRES_PORT}/{DATABASE}",
        env=library_env(),
        user=postgres_user(),
        cwd=state.postgres,
        # "Fast" shutdown: TERM would wait for every client to disconnect.
        stop_signal="INT",
    )


def _backend(settings: Settings, state: State) -> Service:
    return Service(
        name="backend",
        argv=[str(state.backend / "bin/serve"), "backend", str(state.base)],
        port=settings.LAB_BACKEND_PORT,
        url=settings.backend_url,
        env=backend_env(settings, state) | toxiproxy.server_env(settings),
        cwd=state.backend,
        alive_url=f"{settings.backend_url}/healthz",
    )


def _second_server(settings: Settings, state: State) -> Service:
    url = f"http://{LOOPBACK}:{settings.LAB_SECOND_SERVER_PORT}"
    return Service(
        name="backend-beside",
        argv=[str(state.backend / "bin/serve"), "beside", str(state.base)],
        port=settings.LAB_SECOND_SERVER_PORT,
        url=url,
        env=backend_env(settings, state),
        cwd=state.backend,
        alive_url=f"{url}/healthz",
        enabled=settings.LAB_SECOND_SERVER != "off",
    )


def _worker(settings: Settings, state: State) -> Service:
    # One process: several workers of channels-redis on one channel can take each other's unfinished
    # messages.
    return Service(
        name="backend-worker",
        argv=[str(state.backend / "bin/serve"), "worker", str(state.base)],
        # It receives its messages from Redis, and is ready once the backend returns a response from
        # it.
        port=0,
        alive_url=f"{settings.backend_url}/async/workbench/layer-hello/",
        url=f"{redis_service.url(settings)}/1",
        env=backend_env(settings, state),
        cwd=state.backend,
        enabled=settings.LAB_WORKBENCH == "on",
    )


def _backend_metrics(settings: Settings, state: State) -> Service:
    return Service(
        name="backend-metrics",
        argv=[str(state.python), "-m", "observability.metrics_server", str(state.base)],
        port=settings.LAB_METRICS_PORT,
        url=f"http://{LOOPBACK}:{settings.LAB_METRICS_PORT}/metrics",
        env=backend_env(settings, state),
        cwd=state.backend,
    )


def _nginx(settings: Settings, state: State) -> Service:
    # Workers run as the user who started the lab: the distribution's user may not enter the clone.
    globals_ = "daemon off;" + (" user root;" if os.getuid() == 0 else "")
    return Service(
        name="nginx",
        argv=[
            str(require("nginx")),
            *("-e", str(state.logs / "nginx-error.log")),
            *("-c", str(state.run / "nginx.conf")),
            *("-g", globals_),
        ],
        port=settings.LAB_HTTP_PORT,
        host=settings.LAB_BIND,
        url=settings.target_url,
        env=library_env(),
        cwd=state.run,
        # Lets requests in flight finish.
        stop_signal="QUIT",
    )


def _prometheus(settings: Settings, state: State) -> Service:
    return Service(
        name="prometheus",
        argv=[
            str(require("prometheus")),
            f"--config.file={state.run / 'prometheus/prometheus.yml'}",
            f"--storage.tsdb.path={state.data / 'prometheus'}",
            # No authentication, so only on the loopback: other hosts push through the metrics
            # ingress.
            f"--web.listen-address={LOOPBACK}:{settings.LAB_PROMETHEUS_PORT}",
            # Default: every web page in a browser on this machine may read.
            "--web.cors.origin=^$",
            "--web.enable-remote-write-receiver",
            "--enable-feature=native-histograms",
        ],
        port=settings.LAB_PROMETHEUS_PORT,
        url=settings.prometheus_url,
    )
