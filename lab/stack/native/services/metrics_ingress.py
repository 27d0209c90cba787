"""What takes the metrics of a load generator on another host, once it has said the password."""

import os
from ipaddress import IPv4Address

from lab.paths import ROOT, State
from lab.settings import LOOPBACK, Settings
from lab.stack.native.programs import library_env, require
from lab.stack.native.services.service import Service

TEMPLATE = ROOT / "nginx/push-gate/nginx.conf.template"


def service(settings: Settings, state: State) -> Service:
    """An Nginx of its own, beside Prometheus: the target's would measure the load's own pushes."""
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
        mark=f"-c {config}",
        port=settings.LAB_PUSH_PORT,
        host=host,
        url=f"http://{host}:{settings.LAB_PUSH_PORT}/api/v1/write",
        side="load",
        env=library_env(),
        # By it an Nginx is known as this stack's (supervision.py).
        cwd=state.run,
        stop_signal="QUIT",
        # On the loopback k6 pushes to Prometheus itself.
        wanted=not IPv4Address(host).is_loopback,
    )


def values(settings: Settings, state: State) -> dict[str, str]:
    """What the template names."""
    return {
        "LAB_NGINX_RUN_DIR": str(state.run / "push-gate"),
        "LAB_NGINX_ERROR_LOG": str(state.logs / "push-gate.log"),
        "LAB_PUSH_LISTEN": f"{settings.LAB_BIND}:{settings.LAB_PUSH_PORT}",
        "LAB_PUSH_PASSWORDS": str(state.secrets / "push.htpasswd"),
        "LAB_PUSH_RECEIVER": f"http://{LOOPBACK}:{settings.LAB_PROMETHEUS_PORT}/api/v1/write",
    }
