"""Becomes what the settings name: python -m config.server.start backend|beside|worker [STACK]

Each server's command line stands here, checked against its own --help; gunicorn has a file besides
(gunicorn.conf.py), which its master reads again. docs/servers.md says what each of them is. STACK
is for those who look at the list of processes: it tells which stack this server belongs to.
"""

import os
import sys
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured
from lab_settings.kinds import SecondServer, Server

from config import env

ASGI_APP = "config.asgi:application"
# What waits here has cost no worker yet. Gunicorn's default; granian's is 1024, and is its bound on
# requests in work too, shared among the workers.
BACKLOG = 2048
# Longer than Nginx keeps an idle upstream connection (nginx.conf.template): Nginx must be the one
# that closes, or it sends a request into a closing connection and answers 502. Daphne has 60 s and
# no option, granian at most 60 s.
KEEPALIVE_SECONDS = 75
GRANIAN_KEEPALIVE_MS = 60_000
GRANIAN_LONGEST_STOP = 1800


def main(role: str, stack: str = "") -> None:
    """Check the settings, and be replaced by the server."""
    _check()
    if role != "worker":
        _begin_metrics(role)
    # Workers know their server by it (config/asgi.py).
    os.environ["BACKEND_MASTER"] = str(os.getpid())
    # Python keeps -X options that it does not know: a mark that any server's command line can bear.
    python = [sys.executable, "-X", f"lab-{role}={stack}"]
    os.execv(sys.executable, [*python, *_command(role)])  # noqa: S606


def command(server: Server | SecondServer, bind: str, workers: int, timeout: int) -> list[str]:
    """Python's arguments that start `server` on `bind`."""
    host, _, port = bind.rpartition(":")
    at = ["--host", host, "--port", port, "--workers", str(workers), "--backlog", str(BACKLOG)]
    match server:
        case Server.UVICORN | SecondServer.UVICORN:
            return ["-m", "uvicorn", ASGI_APP, *at, *_uvicorn(timeout)]
        case Server.GRANIAN | SecondServer.GRANIAN:
            return ["-m", "granian", ASGI_APP, *at, *_granian(timeout)]
        case Server.DAPHNE | SecondServer.DAPHNE:
            endpoint = f"tcp:{port}:interface={host}:backlog={BACKLOG}"
            return ["-m", "daphne", "--endpoint", endpoint, *_daphne(timeout), ASGI_APP]
        case _:
            return ["-m", "gunicorn", "--config", "gunicorn.conf.py"]


def _uvicorn(timeout: int) -> list[str]:
    return [
        *("--loop", "uvloop", "--http", "httptools", "--no-access-log", "--log-level", "warning"),
        # Django has none.
        *("--lifespan", "off"),
        *("--timeout-keep-alive", str(KEEPALIVE_SECONDS)),
        *("--timeout-graceful-shutdown", str(timeout)),
        # A worker that does not answer its master is replaced. Default: 5; a busy one may need it.
        *("--timeout-worker-healthcheck", str(timeout)),
    ]


def _granian(timeout: int) -> list[str]:
    return [
        # ASGI without lifespan, which Django has none of.
        *("--interface", "asginl", "--loop", "uvloop", "--http", "1"),
        *("--no-access-log", "--log-level", "warning"),
        # Holds for the time before the next request's headers too. Default: 30000.
        *("--http1-header-read-timeout", str(GRANIAN_KEEPALIVE_MS)),
        # Default: the whole server ends with one worker.
        "--respawn-failed-workers",
        *("--workers-kill-timeout", str(min(timeout, GRANIAN_LONGEST_STOP))),
    ]


def _daphne(timeout: int) -> list[str]:
    # Verbosity 0 has no access log. Answers 503 after the timeout.
    return ["--verbosity", "0", "--http-timeout", str(timeout)]


def _command(role: str) -> list[str]:
    lab = env.lab_settings()
    if role == "worker":
        return ["-m", "config.server.worker"]
    if role == "beside":
        return command(lab.LAB_SECOND_SERVER, env.text("BACKEND_BESIDE_BIND"), 1, lab.LAB_TIMEOUT)
    return command(lab.LAB_SERVER, env.text("BACKEND_BIND"), lab.LAB_WORKERS, lab.LAB_TIMEOUT)


def _check() -> None:
    """A wrong setting or a missing secret is one message here, before workers trip over it."""
    try:
        import config.settings  # noqa: F401
    except ImproperlyConfigured as error:
        sys.exit(f"error: {error}")


def _begin_metrics(role: str) -> None:
    """A folder for each server, without the counters of an earlier life: they would be added."""
    folder = Path(env.text("BACKEND_METRICS_DIR"), role)
    folder.mkdir(parents=True, exist_ok=True)
    for file in folder.glob("*.db"):
        file.unlink()
    os.environ |= {"PROMETHEUS_MULTIPROC_DIR": str(folder), "BACKEND_ROLE": role}


if __name__ == "__main__":
    main(*sys.argv[1:])
