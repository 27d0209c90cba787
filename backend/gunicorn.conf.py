"""Gunicorn's configuration, from the lab's settings.

The master reads it again on SIGHUP, which activates new settings: it keeps the socket, new workers
import Django again, and old workers finish their requests.
"""

import json
from typing import Any

from config import env
from config.server import start
from gunicorn import util
from lab_settings.kinds import Server
from prometheus_client import multiprocess

_lab = env.lab_settings()

_WORKER_CLASSES = {
    Server.GUNICORN_SYNC: "sync",
    Server.GUNICORN_GTHREAD: "gthread",
    Server.GUNICORN_UVICORN: "uvicorn_worker.UvicornWorker",
    Server.GUNICORN_ASGI: "asgi",
}

wsgi_app = start.ASGI_APP if _lab.LAB_SERVER.is_asgi else "config.wsgi:application"
bind = env.text("BACKEND_BIND")
worker_class = _WORKER_CLASSES[_lab.LAB_SERVER]
workers = _lab.LAB_WORKERS
threads = _lab.LAB_THREADS if worker_class == "gthread" else 1
timeout = _lab.LAB_TIMEOUT
graceful_timeout = _lab.LAB_TIMEOUT
# `sync` does not support keep-alive. Default: 2.
keepalive = start.KEEPALIVE_SECONDS
backlog = start.BACKLOG
# Django does not support lifespan. Default: auto.
asgi_lifespan = "off"
# Uvicorn's worker uses it too, and at "info" logs each WebSocket, like an access log. Default:
# info.
loglevel = "warning"
# Like Nginx's limit (8k), which rejects first. Default: 4094.
limit_request_line = 8190
# Recycling workers drops connections in the middle of a measurement. Default: 0.
max_requests = 0
# Supervisor and compose manage the server, so the control socket in the user's home is not needed.
control_socket_disable = True
# Heartbeats in memory: a busy disk must not look like a hung worker.
worker_tmp_dir = "/dev/shm"  # noqa: S108


def post_worker_init(worker: Any) -> None:
    """Set the metric of the requests that this worker can process at once; under ASGI, no limit."""
    if _lab.LAB_SERVER.is_asgi:
        return
    # Imported here: in the master it would open the metrics' files under the master's process id.
    from observability import metrics

    metrics.WORKER_SLOTS.set(worker.cfg.threads)


def child_exit(_server: Any, worker: Any) -> None:
    """Remove the gauges of an exited worker from the sum."""
    multiprocess.mark_process_dead(worker.pid)  # type: ignore[no-untyped-call]


def _send_error(sock: Any, status: int, reason: str, _message: str) -> None:
    """Send gunicorn's errors for unreadable requests as JSON in the API's format, not as HTML."""
    # Imported here: in the master it would load Django.
    from config.http import errors

    fault = ("bad_request", errors.BAD_REQUEST)
    if status >= 500:
        fault = ("server_error", errors.SERVER_ERROR)
    content = json.dumps(errors.body(*fault))
    head = f"HTTP/1.1 {status} {reason}\r\nConnection: close\r\nContent-Type: application/json\r\n"
    util.write_nonblock(sock, f"{head}Content-Length: {len(content)}\r\n\r\n{content}".encode())


# Gunicorn has no setting for this.
util.write_error = _send_error
