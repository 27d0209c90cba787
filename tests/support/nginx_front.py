"""A real Nginx with the project's configuration, in front of a configurable backend."""

import json
import math
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
from ops.deadline import BuildTimes

from load_lab.paths import ROOT
from load_lab.settings import defaults
from load_lab.stack.native.program_paths import library_env, require
from load_lab.stack.native.render import write_templates
from load_lab.stack.native.supervision import wait_for
from tests.support.ports import free_port

LIST = "/api/hotel/"
DETAIL = "/api/hotel/0190c6a5-0000-4000-8000-00000000beef/"


def raw(client: httpx.Client, target: str, *headers: str, method: str = "GET") -> str:
    """Send one request in exactly this spelling; return the answer including its headers."""
    lines = [f"{method} {target} HTTP/1.1", "Connection: close", *headers]
    if not any(line.lower().startswith("host:") for line in headers):
        lines.append("Host: lab")
    with socket.create_connection(("127.0.0.1", client.base_url.port), timeout=10) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        with connection.makefile("rb") as response:
            return response.read().decode()


@dataclass(frozen=True)
class TimedBuild:
    """A worker's page. `seconds`: from the decision to build it until it is sent. `seconds_late`:
    from Nginx's timeout until then, negative if it was in time.
    """

    path: str
    seconds: float
    seconds_late: float


def _seconds_late(fetch_start: str) -> float:
    # Outside the queue nothing waits for this fetch.
    if not fetch_start:
        return -math.inf
    start, timeout = map(float, fetch_start.split())
    return time.time() - start - timeout


class Backend:
    """Backend that answers with `status`, `delay`, `headers` and `version`; records requests."""

    def __init__(self, port: int | None = None) -> None:
        self.port = port or free_port()
        self.status, self.delay, self.version, self.headers = 200, 0.0, 1, []
        # Extra content that makes a page as large as a real one.
        self.padding = ""
        # Versions of the built pages; a 304 is not a build.
        self.builds: list[int] = []
        self.timed_builds: list[TimedBuild] = []
        # With `limit_workers`: requests wait for a worker, which rejects them as the backend does.
        self._workers: threading.Semaphore | None = None
        self._build_times = BuildTimes()
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        self.in_flight = self.max_in_flight = 0
        self._lock = threading.Lock()
        self._server: ThreadingHTTPServer | None = None

    def set_lifetimes(self, *, ttl=1, window=1, error=60, reverse=False) -> "Backend":
        """Send the cache headers that the backend sends with LAB_NGINX_CACHE=protected."""
        windows = f"max-age={ttl}, stale-while-revalidate={window}, stale-if-error={error}"
        self.headers = [("Cache-Control", windows), ("X-Accel-Expires", str(ttl))]
        if reverse:
            self.headers.reverse()
        return self

    def limit_workers(self, count: int) -> "Backend":
        """Process `count` requests at once. Like gunicorn's sync workers, they do not notice that a
        client has given up.
        """
        self._workers = threading.Semaphore(count)
        return self

    @contextmanager
    def worker(self, request: BaseHTTPRequestHandler) -> Iterator[bool]:
        """Yield whether the page comes before Nginx's timeout, after the time that it takes."""
        with self._workers or nullcontext():
            start = request.headers.get("X-Fetch-Start", "")
            if self._workers and self._build_times.is_too_late("page", start, time.time()):
                yield False
                return
            began = time.time()
            with self._build_times.measure("page"):
                time.sleep(self.delay)
            try:
                yield True
            finally:
                build = TimedBuild(request.path, time.time() - began, _seconds_late(start))
                self.timed_builds.append(build)

    def start(self) -> None:
        handler = type("Handler", (_Handler,), {"backend": self})
        self._server = _Server(("127.0.0.1", self.port), handler)
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        """Refuse connections from now on."""
        if self._server:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def enter(self, request: BaseHTTPRequestHandler) -> None:
        with self._lock:
            self.requests.append((request.command, request.path, dict(request.headers)))
            self.in_flight += 1
            self.max_in_flight = max(self.max_in_flight, self.in_flight)

    def leave(self) -> None:
        with self._lock:
            self.in_flight -= 1


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024


class _Handler(BaseHTTPRequestHandler):
    """HTTP/1.0, as a sync worker: a stopped backend leaves no connection open."""

    backend: Backend

    def log_message(self, *args) -> None:
        """Suppress the log."""

    def do_GET(self) -> None:
        backend = self.backend
        backend.enter(self)
        try:
            # The page's data is read at the start, as in a slow serializer.
            status, version = backend.status, backend.version
            with backend.worker(self) as is_in_time:
                self._answer(status if is_in_time else 529, version)
        except (BrokenPipeError, ConnectionResetError):
            pass
        finally:
            backend.leave()

    do_POST = do_HEAD = do_OPTIONS = do_PUT = do_DELETE = do_GET

    def _answer(self, status: int, version: int) -> None:
        etag = f'"v{version}"'
        if status == 200 and self.headers.get("If-None-Match") == etag:
            status = 304
        if status == 200:
            self.backend.builds.append(version)
        body = json.dumps({"version": version, "padding": self.backend.padding}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("ETag", etag)
        for name, value in self.backend.headers:
            self.send_header(name, value)
        if status != 304:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if status != 304 and self.command != "HEAD":
            self.wfile.write(body)


def render_front(folder: Path, backend_port: int, **settings: str) -> str:
    """Write nginx.conf and its included files to `folder`; return the address for clients."""
    port = free_port()
    values = {
        **defaults(),
        "LAB_NGINX_WORKERS": "2",
        "LAB_NGINX_RUN_DIR": str(folder),
        "LAB_NGINX_SNIPPETS": str(ROOT / "nginx/snippets"),
        "LAB_NGINX_ACCESS_LOG": str(folder / "access.log"),
        "LAB_NGINX_ERROR_LOG": str(folder / "error.log"),
        "LAB_NGINX_LISTEN": f"127.0.0.1:{port}",
        "LAB_NGINX_STATUS_LISTEN": f"127.0.0.1:{free_port()}",
        "LAB_BACKEND_UPSTREAM": f"127.0.0.1:{backend_port}",
        "LAB_BESIDE_UPSTREAM": f"127.0.0.1:{backend_port}",
        **settings,
    }
    write_templates(values, folder)
    return f"http://127.0.0.1:{port}"


def nginx(folder: Path, *flags: str) -> list[str]:
    """Return the command that starts Nginx; TEST_NGINX names another build."""
    program = os.environ.get("TEST_NGINX") or str(require("nginx"))
    user = "user root; " if os.getuid() == 0 else ""
    files = ["-e", str(folder / "error.log"), "-c", str(folder / "nginx.conf")]
    return [program, *files, "-g", f"{user}daemon off;", *flags]


@contextmanager
def front(
    folder: Path,
    backend: Backend,
    *,
    alter: Callable[[Path], None] | None = None,
    allowed: str = "[none]",
    **settings: str,
) -> Iterator[httpx.Client]:
    """Start Nginx in front of `backend`; yield a client. At the end, the log may have no critical
    lines except those that contain `allowed`.

    `alter` may change the rendered configuration before the start.
    """
    url = render_front(folder, backend.port, **settings)
    if alter:
        alter(folder)
    process = subprocess.Popen(nginx(folder), env=library_env(), stderr=subprocess.PIPE)
    backend.start()
    try:
        # Beyond its limit, httpx's pool closes a connection that another thread is about to use.
        limits = httpx.Limits(max_keepalive_connections=None)
        with httpx.Client(base_url=url, timeout=30, limits=limits) as client:
            wait_for(lambda: _is_ready(client), seconds=5, what="Nginx")
            yield client
    finally:
        process.terminate()
        process.wait(timeout=10)
        backend.stop()
    critical = [line for line in _lines(folder / "error.log") if "[crit]" in line or "[al" in line]
    assert not [line for line in critical if allowed not in line], critical


def _is_ready(client: httpx.Client) -> bool:
    try:
        return client.get("/healthz").status_code == 404
    except httpx.HTTPError:
        return False


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []
