"""Gunicorn, from the lab's settings. Read again on HUP, which makes new settings active: the master
keeps the socket, new workers import Django afresh, old ones finish what they have.
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
# `sync` has none. Default: 2.
keepalive = start.KEEPALIVE_SECONDS
backlog = start.BACKLOG
# Django has none. Default: auto.
asgi_lifespan = "off"
# Uvicorn's worker takes it too, and says each WebSocket at "info", as an access log. Default: info.
loglevel = "warning"
# As Nginx's (8k), which says no first. Default: 4094.
limit_request_line = 8190
# Recycling workers drops connections in the middle of a measurement. Default: 0.
max_requests = 0
# Supervisor and compose hold the server; a control socket in the user's home is not needed.
control_socket_disable = True
# Heartbeats in memory: a busy disk must not look like a hung worker.
worker_tmp_dir = "/dev/shm"  # noqa: S108


def post_worker_init(worker: Any) -> None:
    """Tell how many requests this worker can answer at once; by ASGI it takes whatever comes."""
    if _lab.LAB_SERVER.is_asgi:
        return
    # Imported here: in the master it would open the metrics' files under the master's id.
    from observability import metrics

    metrics.WORKER_SLOTS.set(worker.cfg.threads)


def child_exit(_server: Any, worker: Any) -> None:
    """Take the gauges of a worker that ended out of the sum."""
    multiprocess.mark_process_dead(worker.pid)  # type: ignore[no-untyped-call]


def _refuse(sock: Any, status: int, reason: str, _message: str) -> None:
    """What gunicorn answers to a request that it can't read, in the one error shape, not a page."""
    # Imported here: in the master it would load Django.
    from config.http import errors

    fault = ("bad_request", errors.BAD_REQUEST)
    if status >= 500:
        fault = ("server_error", errors.SERVER_ERROR)
    said = json.dumps(errors.body(*fault))
    head = f"HTTP/1.1 {status} {reason}\r\nConnection: close\r\nContent-Type: application/json\r\n"
    util.write_nonblock(sock, f"{head}Content-Length: {len(said)}\r\n\r\n{said}".encode())


# It has no setting for this.
util.write_error = _refuse
