"""Toxiproxy as a service of the native engine; its delays: backend/ops/toxics.py."""

from load_lab.paths import State
from load_lab.settings import LOOPBACK, Settings
from load_lab.stack.native.program_paths import require
from load_lab.stack.native.services.service import Service


def service(settings: Settings, _state: State) -> Service:
    """Return toxiproxy as a service. It always runs, and carries no traffic without a delay.

    It runs on the target's CPUs: its traffic is on the target's path, and on the generator's CPUs
    it would disturb the generator's timing. Its cost: docs/latency.md.
    """
    port = settings.LAB_TOXIPROXY_PORT
    return Service(
        name="toxiproxy",
        argv=[str(require("toxiproxy-server")), "-host", LOOPBACK, "-port", str(port)],
        port=port,
        url=f"http://{LOOPBACK}:{port}/proxies",
    )


def server_env(settings: Settings) -> dict[str, str]:
    """Return the address at which the server finds Postgres while there is a delay. Management
    commands do not get it: they connect directly.
    """
    return {"BACKEND_DELAYED_POSTGRES": f"{LOOPBACK}:{settings.delayed_postgres_port}"}


def toxics_env(settings: Settings) -> dict[str, str]:
    """Return the variables of `ops.toxics` in addition to the backend's."""
    return {
        **server_env(settings),
        "BACKEND_DELAYED_SERVER": f"{LOOPBACK}:{settings.delayed_backend_port}",
        "BACKEND_SERVER": f"{LOOPBACK}:{settings.LAB_BACKEND_PORT}",
        "BACKEND_TOXIPROXY_URL": f"http://{LOOPBACK}:{settings.LAB_TOXIPROXY_PORT}",
    }
