"""Start the server that the settings select.

python -m config.server.start backend|beside|worker [STACK]

The process is replaced by the server. Each server's command line is defined here, checked against
its --help; gunicorn also has gunicorn.conf.py, which its master reads again. docs/servers.md
describes the servers. STACK marks the stack of this server in the process list.
"""

import os
import sys
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured
from lab_settings.kinds import SecondServer, Server

from config import env

ASGI_APP = "config.asgi:application"
# Connections that wait here use no worker yet. Gunicorn's default. Granian's is 1024; granian also
# uses it as its limit of concurrent requests, divided among the workers.
BACKLOG = 2048
# Longer than Nginx keeps an idle upstream connection (nginx.conf.template). Nginx must be the side
# that closes; otherwise it sends a request into a closing connection and returns 502. Daphne has
# 60 s and no option, granian at most 60 s.
KEEPALIVE_SECONDS = 75
GRANIAN_KEEPALIVE_MS = 60_000
GRANIAN_MAX_STOP_SECONDS = 1800


def main(role: str, stack: str = "") -> None:
    """Check the settings, then replace this process with the server."""
    _check()
    if role != "worker":
        _create_metrics_folder(role)
    # Workers identify their server by it (config/asgi.py).
    os.environ["BACKEND_MASTER"] = str(os.getpid())
    # Python accepts unknown -X options, so they can mark the command line of every server.
    python = [sys.executable, "-X", f"lab-{role}={stack}"]
    os.execv(sys.executable, [*python, *_command(role)])  # noqa: S606


def command(server: Server | SecondServer, bind: str, workers: int, timeout: int) -> list[str]:
    """Return Python's arguments that start `server` on `bind` (host:port)."""
    host, _, port = bind.rpartition(":")
    options = ["--host", host, "--port", port, "--workers", str(workers), "--backlog", str(BACKLOG)]
    match server:
        case Server.UVICORN | SecondServer.UVICORN:
            return ["-m", "uvicorn", ASGI_APP, *options, *_uvicorn(timeout)]
        case Server.GRANIAN | SecondServer.GRANIAN:
            return ["-m", "granian", ASGI_APP, *options, *_granian(timeout)]
        case Server.DAPHNE | SecondServer.DAPHNE:
            endpoint = f"tcp:{port}:interface={host}:backlog={BACKLOG}"
            return ["-m", "daphne", "--endpoint", endpoint, *_daphne(timeout), ASGI_APP]
        case _:
            return ["-m", "gunicorn", "--config", "gunicorn.conf.py"]


def _uvicorn(timeout: int) -> list[str]:
    return [
        *("--loop", "uvloop", "--http", "httptools", "--no-access-log", "--log-level", "warning"),
        # Django does not support lifespan.
        *("--lifespan", "off"),
        *("--timeout-keep-alive", str(KEEPALIVE_SECONDS)),
        *("--timeout-graceful-shutdown", str(timeout)),
        # The master replaces a worker that does not respond in time. Default: 5; a busy worker may
        # need longer.
        *("--timeout-worker-healthcheck", str(timeout)),
    ]


def _granian(timeout: int) -> list[str]:
    return [
        # ASGI without lifespan, which Django does not support.
        *("--interface", "asginl", "--loop", "uvloop", "--http", "1"),
        *("--no-access-log", "--log-level", "warning"),
        # Also limits the idle time before the next request's headers. Default: 30000.
        *("--http1-header-read-timeout", str(GRANIAN_KEEPALIVE_MS)),
        # Default: the whole server exits if one worker does.
        "--respawn-failed-workers",
        *("--workers-kill-timeout", str(min(timeout, GRANIAN_MAX_STOP_SECONDS))),
    ]


def _daphne(timeout: int) -> list[str]:
    # Verbosity 0 disables the access log. Daphne returns 503 after the timeout.
    return ["--verbosity", "0", "--http-timeout", str(timeout)]


def _command(role: str) -> list[str]:
    lab = env.lab_settings()
    if role == "worker":
        return ["-m", "config.server.worker"]
    if role == "beside":
        return command(lab.LAB_SECOND_SERVER, env.text("BACKEND_BESIDE_BIND"), 1, lab.LAB_TIMEOUT)
    return command(lab.LAB_SERVER, env.text("BACKEND_BIND"), lab.LAB_WORKERS, lab.LAB_TIMEOUT)


def _check() -> None:
    """Exit with one message for an invalid setting or a missing secret, before workers fail."""
    try:
        import config.settings  # noqa: F401
    except ImproperlyConfigured as error:
        sys.exit(f"error: {error}")


def _create_metrics_folder(role: str) -> None:
    """Create the server's metrics folder. An earlier run's counters are deleted, or they would be
    added.
    """
    folder = Path(env.text("BACKEND_METRICS_DIR"), role)
    folder.mkdir(parents=True, exist_ok=True)
    for file in folder.glob("*.db"):
        file.unlink()
    os.environ |= {"PROMETHEUS_MULTIPROC_DIR": str(folder), "BACKEND_ROLE": role}


if __name__ == "__main__":
    main(*sys.argv[1:])
