"""CPU time of k6 per request with and without the sample of HTML answers (k6/lib/pages.js).

PYTHONPATH=. .venv/bin/python tests/benchmarks/page_sample.py [--rounds 5] [--rate 500]

Nginx serves one page from a file on CPU 0, and k6 loads it from CPU 1 at a constant rate: without
the sample, with it, and with each answer sampled, in alternating order. Needs no stack; nothing
else may run on the machine.
"""

import os
import shutil
import subprocess
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median
from tempfile import TemporaryDirectory

from load_lab.load.load import Load
from load_lab.paths import ROOT
from load_lab.stack.native.program_paths import require
from load_lab.stack.native.supervision import port_is_open, wait_for
from load_lab.targets.mix import Mix, Operation, Page, Request, write_mix
from tests.support.ports import free_port

_CONFIGURATION = """
worker_processes 1; daemon off; pid nginx.pid; error_log stderr;
events {{ worker_connections 1024; }}
http {{ client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4;
scgi_temp_path t5; access_log off; types {{ text/html html; }} keepalive_requests 1000000;
server {{ listen 127.0.0.1:{port}; root {folder}; }} }}
"""
_ROW = '<a class="item" href="/items/1/">an item of a list</a>\n'
_ARMS = ("without", "with", "each answer")


def main() -> None:
    parser = ArgumentParser(description="What the sample of HTML answers costs k6.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--rate", type=int, default=500)
    parser.add_argument("--kilobytes", type=int, default=50)
    options = parser.parse_args()
    load = Load("hold", "replay", rate=options.rate, duration=f"{options.seconds}s")
    requests = options.rate * options.seconds
    with TemporaryDirectory() as name, _page(Path(name), options.kilobytes) as url:
        rounds = [
            {arm: _cpu_seconds(Path(name), url, load, arm) / requests * 1e6 for arm in order}
            for order in [_ARMS, _ARMS[::-1]] * options.rounds
        ][: options.rounds]
    for arm in _ARMS:
        values = [each[arm] for each in rounds]
        more = [each[arm] - each["without"] for each in rounds]
        print(
            f"{arm}: {median(values):.0f} µs of k6's CPU time per request, {median(more):+.0f} µs "
            f"({', '.join(f'{each:+.0f}' for each in more)})"
        )


@contextmanager
def _page(folder: Path, kilobytes: int) -> Iterator[str]:
    port, length = free_port(), kilobytes * 1000
    (folder / "page.html").write_text((_ROW * (length // len(_ROW) + 1))[:length])
    (folder / "nginx.conf").write_text(_CONFIGURATION.format(port=port, folder=folder))
    # A worker of root's Nginx is another user.
    folder.chmod(0o755)
    argv = [str(require("nginx")), "-p", str(folder), "-c", "nginx.conf", "-e", "stderr"]
    with subprocess.Popen(["taskset", "-c", "0", *argv]) as nginx:
        try:
            wait_for(lambda: port_is_open("127.0.0.1", port), seconds=10, what="Nginx")
            yield f"http://127.0.0.1:{port}"
        finally:
            nginx.terminate()


def _cpu_seconds(folder: Path, url: str, load: Load, arm: str) -> float:
    """Return k6's CPU seconds for a load; its start is in them, in each arm the same."""
    page = None if arm == "without" else Page(least=1000, most=1_000_000, has_login=False)
    request, name = Request(path="/page.html"), "GET /page.html"
    operation = Operation(
        name=name, method="GET", weight=1, expect=200, page=page, requests=(request,)
    )
    write_mix(Mix(source="benchmark", operations=(operation,)), folder / "mix.json")
    env = {**os.environ, "BASE_URL": url, "MIX": str(folder / "mix.json"), **load.env()}
    argv = ["taskset", "-c", "1", str(require("k6")), "run", "--quiet", "main.js"]
    before = getrusage(RUSAGE_CHILDREN)
    subprocess.run(argv, cwd=_scripts(folder, arm), env=env, check=True, capture_output=True)
    after = getrusage(RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _scripts(folder: Path, arm: str) -> Path:
    """Return the folder of k6's scripts; of a copy that samples each answer."""
    if arm != "each answer":
        return ROOT / "k6"
    copy = folder / "k6"
    if not copy.exists():
        shutil.copytree(ROOT / "k6", copy, ignore=shutil.ignore_patterns("node_modules"))
        script = copy / "lib/pages.js"
        script.write_text(script.read_text().replace("const SAMPLES = 10;", "const SAMPLES = 1e9;"))
    return copy


if __name__ == "__main__":
    main()
