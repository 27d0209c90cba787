"""The metrics ingress: accepts metrics of a load generator on another host, with a password."""

import os
from ipaddress import IPv4Address

from load_lab.paths import State, lab_file
from load_lab.settings import LOOPBACK, Settings
from load_lab.stack.native.program_paths import library_env, require
from load_lab.stack.native.services.service import Service

TEMPLATE = lab_file("nginx/push-gate/nginx.conf.template")


def service(settings: Settings, state: State) -> Service:
    """Return a separate Nginx for the pushes: the target's Nginx would count them as load."""
    config = state.run / "push-gate/nginx.conf"
    globals_ = "daemon off;" + (" user root;" if os.getuid() == 0 else "")
    host = settings.LAB_BIND
    return Service(
        name="push-gate",
        argv=[
            str(require("nginx")),
            *("-e", str(state.logs / "push-gate.log")),
            *("-c", str(config)),
            *("-g", globals_),
        ],
        port=settings.LAB_PUSH_PORT,
        host=host,
        url=f"http://{host}:{settings.LAB_PUSH_PORT}/api/v1/write",
        env=library_env(),
        # Identifies this Nginx as the stack's (supervision.py).
        cwd=state.run,
        stop_signal="QUIT",
        # On the loopback, k6 pushes directly to Prometheus.
        enabled=not IPv4Address(host).is_loopback,
    )


def values(settings: Settings, state: State) -> dict[str, str]:
    """Return the variables of the template."""
    return {
        "LAB_NGINX_RUN_DIR": str(state.run / "push-gate"),
        "LAB_NGINX_ERROR_LOG": str(state.logs / "push-gate.log"),
        "LAB_PUSH_LISTEN": f"{settings.LAB_BIND}:{settings.LAB_PUSH_PORT}",
        "LAB_PUSH_PASSWORDS": str(state.secrets / "push.htpasswd"),
        "LAB_PUSH_RECEIVER": f"http://{LOOPBACK}:{settings.LAB_PROMETHEUS_PORT}/api/v1/write",
    }
