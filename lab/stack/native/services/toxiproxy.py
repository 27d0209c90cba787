"""Toxiproxy as a service of the native engine; what it delays: backend/ops/toxics.py."""

from lab.paths import State
from lab.settings import LOOPBACK, Settings
from lab.stack.native.programs import require
from lab.stack.native.services.service import Service


def service(settings: Settings, _state: State) -> Service:
    """Always there, and out of the way while nothing is delayed.

    On the target's CPUs: what it forwards is on the target's path, and on the other side it would
    disturb the generator's clock. What it costs: docs/latency.md.
    """
    port = settings.LAB_TOXIPROXY_PORT
    return Service(
        name="toxiproxy",
        argv=[str(require("toxiproxy-server")), "-host", LOOPBACK, "-port", str(port)],
        # Its only argument that another stack's has not.
        mark=f"-port {port}",
        port=port,
        url=f"http://{LOOPBACK}:{port}/proxies",
    )


def server_env(settings: Settings) -> dict[str, str]:
    """Where the server finds Postgres while it is delayed. No command is told: they go straight."""
    return {"BACKEND_DELAYED_POSTGRES": f"{LOOPBACK}:{settings.delayed_postgres_port}"}


def toxics_env(settings: Settings) -> dict[str, str]:
    """What `ops.toxics` reads besides the backend's own variables."""
    return {
        **server_env(settings),
        "BACKEND_DELAYED_SERVER": f"{LOOPBACK}:{settings.delayed_backend_port}",
        "BACKEND_SERVER": f"{LOOPBACK}:{settings.LAB_BACKEND_PORT}",
        "BACKEND_TOXIPROXY_URL": f"http://{LOOPBACK}:{settings.LAB_TOXIPROXY_PORT}",
    }
