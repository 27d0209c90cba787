"""A Prometheus of a test's own, with samples that the test writes."""

import struct
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx

from load_lab.metrics import push
from load_lab.paths import ROOT
from load_lab.stack.native.program_paths import require
from load_lab.stack.native.supervision import wait_for
from tests.support.ports import free_port

# A value that ends a series, as a scrape without it does.
STALE = None
Samples = Iterable[tuple[float, float | None]]


@contextmanager
def running_prometheus(folder: Path) -> Iterator[str]:
    """Yield the address of a Prometheus without targets and rules, with the stack's options."""
    config = (ROOT / "prometheus/prometheus.yml").read_text()
    (folder / "prometheus.yml").write_text(config.partition("# Recording rules")[0])
    port = free_port()
    argv = [str(require("prometheus")), f"--config.file={folder / 'prometheus.yml'}"]
    argv += [f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address=127.0.0.1:{port}"]
    argv += ["--web.enable-remote-write-receiver", "--enable-feature=native-histograms"]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(argv, stderr=log)
    url = f"http://127.0.0.1:{port}"
    try:
        wait_for(lambda: _is_ready(url), seconds=20, what="Prometheus")
        yield url
    finally:
        process.terminate()
        process.wait(20)


def write(url: str, name: str, labels: Mapping[str, str], samples: Samples) -> None:
    """Write a series by remote write, as k6 and the lab do."""
    names = {"__name__": name, **labels}
    values = (
        push._series(names, push._ENDED if value is STALE else struct.pack("<d", value), at)
        for at, value in ((int(at * 1000), value) for at, value in samples)
    )
    push._push(f"{url}/api/v1/write", b"".join(push._field(1, one) for one in values))


def _is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/-/ready").status_code == 200
    except httpx.HTTPError:
        return False
