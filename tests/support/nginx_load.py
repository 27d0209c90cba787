"""Many readers of one page that changes, and their results; also a command:

.venv/bin/python -m tests.support.nginx_load --answer 1.5 --rate 200 --seconds 12
"""

import argparse
import asyncio
import json
import tempfile
import time
from bisect import bisect_right
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread

from tests.support.nginx_front import LIST, Backend, front

_NO_QUEUE = ("cache/protected/server.conf", "http://refresh$uri", "http://refresh/direct$uri")
_LOCK = ("page-cache/store.conf", "revalidate on;", "revalidate on; proxy_cache_lock on;")
_STALE = ("page-cache/store.conf", "lock on;", "lock on; proxy_cache_use_stale updating;")
# The project's variant and the alternatives that were tried: (file, old text, new text).
VARIANTS: dict[str, list[tuple[str, str, str]]] = {
    "queue": [],
    "lock alone": [_LOCK, _NO_QUEUE],
    "use_stale updating": [_LOCK, _NO_QUEUE, _STALE],
    "queue by second": [
        ("cache/protected/internal-protected.conf", "|$http_if_none_match", "|$second"),
        ("page-cache/http.conf", "map $upstream_status", "map $msec $second {\n"
         '"~^(?<whole>\\d+)" $whole;\n}\nmap $upstream_status'),
    ],
}  # fmt: skip


@dataclass
class Readings:
    """Results of the readers; `stale` has the seconds since each page was superseded."""

    stale: list[float] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)
    failed: int = 0


@dataclass
class Pages:
    """The backend's versions, and the time at which each began."""

    backend: Backend
    every: float
    starts: list[float] = field(default_factory=lambda: [time.time()])

    def change(self, end: Event) -> None:
        while not end.wait(self.every):
            self.backend.version += 1
            self.starts.append(time.time())

    def stale(self, version: int, now: float) -> float:
        """Return the seconds since `version` was superseded; 0 for the newest."""
        newest = bisect_right(self.starts, now)
        return max(0.0, now - self.starts[version]) if version < newest else 0.0


async def _read(pool: list, port: int, path: str) -> tuple[int, str, bytes]:
    reader, writer = pool.pop() if pool else await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in head[1:])}
    body = await reader.readexactly(int(headers["content-length"]))
    if headers.get("connection") == "close":
        writer.close()
    else:
        pool.append((reader, writer))
    return int(head[0].split()[1]), headers.get("x-cache-status", ""), body


async def _reader(readings: Readings, pages: Pages, pool: list, port: int) -> None:
    start = time.time()
    try:
        status, cache, body = await _read(pool, port, LIST)
    except (OSError, asyncio.IncompleteReadError):
        status, cache, body = 0, "", b""
    readings.waits.append(time.time() - start)
    readings.statuses[cache] += 1
    if status == 200:
        readings.stale.append(pages.stale(json.loads(body)["version"], time.time()))
    else:
        readings.failed += 1


async def _read_all(
    readings: Readings, pages: Pages, port: int, rate: float, seconds: float
) -> None:
    """Start one reader every 1/rate seconds, without waiting for the earlier ones."""
    pool: list = []
    begin = time.time()
    async with asyncio.TaskGroup() as group:
        for number in range(int(rate * seconds)):
            await asyncio.sleep(max(0, begin + number / rate - time.time()))
            group.create_task(_reader(readings, pages, pool, port))
    for _, writer in pool:
        writer.close()


def read_pages(client, backend: Backend, *, rate: float, seconds: float, every: float) -> Readings:
    """Read at `rate` for `seconds` a page that changes every `every` seconds."""
    readings, pages, end = Readings(), Pages(backend, every), Event()
    writer = Thread(target=pages.change, args=(end,))
    writer.start()
    try:
        asyncio.run(_read_all(readings, pages, client.base_url.port, rate, seconds))
    finally:
        end.set()
        writer.join()
    return readings


def _alter(folder: Path, variant: str) -> None:
    for name, old, new in VARIANTS[variant]:
        path = folder / name
        text = path.read_text()
        assert old in text, (name, old)
        path.write_text(text.replace(old, new, 1))


def measure(variant: str, delay: float, rate: float, seconds: float, every: float) -> str:
    """Return one line of results for one variant."""
    backend = Backend().set_lifetimes()
    with (
        tempfile.TemporaryDirectory() as folder,
        front(
            Path(folder),
            backend,
            alter=lambda configuration: _alter(configuration, variant),
            LAB_NGINX_CACHE="protected",
        ) as client,
    ):
        client.get(LIST, headers={"Accept-Encoding": "identity"})
        backend.delay, earlier = delay, len(backend.requests)
        readings = read_pages(client, backend, rate=rate, seconds=seconds, every=every)
        builds = Counter(backend.builds)
    waits = sorted(readings.waits)
    return (
        f"{variant:20} upstream {len(backend.requests) - earlier:4}  most at once "
        f"{backend.max_in_flight:4}  builds per version {max(builds.values()):4}  "
        f"stalest {max(readings.stale):4.1f} s  p50 {waits[len(waits) // 2] * 1000:6.1f} ms  "
        f"longest {waits[-1]:4.1f} s  failed {readings.failed}  {dict(readings.statuses)}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--answer", type=float, default=1.5)
    parser.add_argument("--rate", type=float, default=200)
    parser.add_argument("--seconds", type=float, default=12)
    parser.add_argument("--every", type=float, default=3)
    parser.add_argument("variants", nargs="*", default=list(VARIANTS))
    arguments = parser.parse_args()
    for variant in arguments.variants:
        with suppress(KeyboardInterrupt):
            print(
                measure(
                    variant, arguments.answer, arguments.rate, arguments.seconds, arguments.every
                ),
                flush=True,
            )


if __name__ == "__main__":
    main()
