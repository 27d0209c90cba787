"""What one answer costs in each position of the backend's caches, on the running native stack.

.venv/bin/python tools/cache_cost.py

One client, one worker. The worker's CPU time is what an answer costs it, however busy the machine
is; the client's times are those of this machine at this time. Empties Redis; the stack keeps the
last position.
"""

import time

import httpx
import psutil
from redis import Redis

from lab.engine.native import NativeEngine
from lab.paths import current_state
from lab.settings import Settings, changed

SECONDS = 3.0
# LAB_REDIS_CACHE, LAB_DETAIL, LAB_LOCAL_CACHE.
POSITIONS = (
    ("off", "naive", "off"),
    ("off", "fast", "off"),
    ("page", "naive", "off"),
    ("page", "fast", "off"),
    ("versioned", "fast", "off"),
    ("off", "fast", "lru"),
)


def main() -> None:
    """Print one line for each position and kind of request."""
    engine = NativeEngine(current_state())
    settings = engine.settings()
    if settings is None:
        raise SystemExit("The native stack is not running. Start it: lab up")
    password = current_state().secret("redis_password")
    for redis, detail, local in POSITIONS:
        switches = {"LAB_REDIS_CACHE": redis, "LAB_DETAIL": detail, "LAB_LOCAL_CACHE": local}
        wanted = ["LAB_WORKERS=1", *(f"{name}={value}" for name, value in switches.items())]
        engine.apply(changed(settings, wanted))
        # `page` would go on answering with what another position left there.
        Redis(port=settings.LAB_REDIS_PORT, password=password).flushall()
        _measure_position(settings, f"{redis:9} {detail:5} {local:3}")


def _measure_position(settings: Settings, position: str) -> None:
    api = f"{settings.backend_url}/api/hotel/"
    page = f"{api}{httpx.get(api).json()[0]['id']}/"
    plain = {"Accept-Encoding": "identity"}
    tag = httpx.get(page, headers=plain, timeout=60).headers["ETag"]
    requests = {
        "list": (api, plain),
        "detail": (page, plain),
        "detail, gzip": (page, {"Accept-Encoding": "gzip"}),
        "detail, 304": (page, {**plain, "If-None-Match": tag}),
        "list, 304": (api, {**plain, "If-None-Match": "*"}),
        "healthz": (f"{settings.backend_url}/healthz", plain),
    }
    for name, (url, headers) in requests.items():
        print(f"{position} {name:12} {_cost(settings, url, headers)}", flush=True)


def _cost(settings: Settings, url: str, headers: dict[str, str]) -> str:
    times: list[float] = []
    with httpx.Client(headers=headers, timeout=60) as client:
        client.get(url)
        worker = _worker(settings)
        before, end = sum(worker.cpu_times()[:2]), time.monotonic() + SECONDS
        while time.monotonic() < end or len(times) < 3:
            started = time.perf_counter()
            client.get(url)
            times.append((time.perf_counter() - started) * 1000)
    cpu = (sum(worker.cpu_times()[:2]) - before) / len(times) * 1000
    middle = sorted(times)[len(times) // 2]
    return f"CPU {cpu:7.2f} ms, client p50 {middle:8.2f} ms ({len(times)} requests)"


def _worker(settings: Settings) -> psutil.Process:
    """The one worker: the only child of the process that listens on the backend's port."""
    listening = {
        c.pid
        for c in psutil.net_connections("inet")
        if c.status == psutil.CONN_LISTEN and c.laddr.port == settings.LAB_BACKEND_PORT
    }
    (worker,) = [p for p in psutil.process_iter() if p.pid in listening and not p.children()]
    return worker


if __name__ == "__main__":
    main()
