"""Cost of pushing metrics for the load generator, on the running stack.

.venv/bin/python tests/benchmarks/metrics_overhead.py [--pairs 3] [--seconds 20] [--vus 8] [--json]

Each pair is one k6 run with its metrics pushed and one without (K6_OUT unset), in alternating
order. The load is closed, against the list with LAB_NGINX_CACHE=protected: Nginx responds from
memory, so that k6 itself is the limit. Afterwards the stack has its previous settings. Exit code 1
if the median of the ratios is below 0.95.

A ratio of rates depends on this machine at this time: neighbours affect it more than metrics do.
The ratio by CPU compares k6's own CPU times per request, which only the native engine can report:
the ratio of the rates if k6 had its CPU to itself.
"""

import json
import os
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median
from typing import Any

from load_lab.errors import LabError
from load_lab.load.k6 import k6_env
from load_lab.load.load import Load, new_testid
from load_lab.load.process import capture_output
from load_lab.paths import project
from load_lab.results.arms import alternate
from load_lab.settings import Settings, load_settings, update_settings
from load_lab.stack.choice import choose_engine
from load_lab.stack.engine import Engine
from load_lab.targets.reference.app import ReferenceApp

MIN_RATIO = 0.95

_LINE = (
    "with {with[rps]:8.1f}/s, {with[cpu_us]} µs of k6's CPU per request; "
    "without {without[rps]:8.1f}/s, {without[cpu_us]} µs; ratio {ratio}, by CPU {ratio_by_cpu} "
    "({first} first, load average {load_average})"
)


def main() -> int:
    """Measure the pairs, print them and their medians; returns the exit code."""
    options = _parse_options()
    engine = choose_engine(load_settings())
    previous = engine.settings()
    if previous is None:
        raise LabError("The stack is not running. Start it: lab up")
    cache_settings = update_settings(
        previous, ["LAB_NGINX_CACHE=protected", "LAB_NGINX_CACHE_TTL=1h"]
    )
    engine.apply(cache_settings)
    try:
        # Fills the cache and every buffer; not counted.
        _run(engine, cache_settings, options, push=True)
        pairs = [_pair(engine, cache_settings, options, number) for number in range(options.pairs)]
    finally:
        engine.apply(previous)
    median_ratio, median_by_cpu = _median(pairs, "ratio"), _median(pairs, "ratio_by_cpu")
    if options.json:
        medians = {"median_ratio": median_ratio, "median_ratio_by_cpu": median_by_cpu}
        print(json.dumps({**medians, "runs": pairs, **vars(options)}, indent=2))
    else:
        print(
            f"medians: {median_ratio} of the rates (enough: {MIN_RATIO}), "
            f"{median_by_cpu} by k6's CPU"
        )
    return 0 if median_ratio is not None and median_ratio >= MIN_RATIO else 1


def _median(pairs: list[dict[str, Any]], name: str) -> float | None:
    values = [pair[name] for pair in pairs if pair[name] is not None]
    return round(median(values), 3) if values else None


def _parse_options() -> Namespace:
    parser = ArgumentParser(description="What pushing metrics costs the load generator.")
    parser.add_argument("--pairs", type=int, default=3, choices=range(1, 101), metavar="1..100")
    parser.add_argument("--seconds", type=int, default=20, choices=range(2, 601), metavar="2..600")
    parser.add_argument("--vus", type=int, default=8, choices=range(1, 1001), metavar="1..1000")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    return parser.parse_args()


def _pair(engine: Engine, settings: Settings, options: Namespace, number: int) -> dict[str, Any]:
    """Measure both runs, in alternating order: the first affects the machine for the second."""
    order = alternate((True, False), number)
    runs = {push: _run(engine, settings, options, push=push) for push in order}
    pair = {
        "first": "with" if order[0] else "without",
        "with": runs[True],
        "without": runs[False],
        "ratio": round(runs[True]["rps"] / runs[False]["rps"], 3),
        "ratio_by_cpu": _ratio_by_cpu(runs),
        "load_average": round(os.getloadavg()[0], 1),
    }
    if not options.json:
        print(_LINE.format(**pair), flush=True)
    return pair


def _run(engine: Engine, settings: Settings, options: Namespace, *, push: bool) -> dict[str, Any]:
    """Return requests per second of one run by k6's own count, and k6's CPU time per request."""
    load = Load(
        "closed",
        "list",
        vus=options.vus,
        duration=f"{options.seconds}s",
        testid=new_testid("overhead"),
    )
    before = _cpu_of_children()
    summary = _summary(engine, settings, load, push=push)
    count = _request_count(summary)
    cpu_us = (_cpu_of_children() - before) / count * 1e6
    return {
        "rps": round(count / summary["lab"]["load_seconds"], 1),
        # In a container k6 is not a child process.
        "cpu_us": round(cpu_us, 1) if engine.name == "native" else None,
    }


def _summary(engine: Engine, settings: Settings, load: Load, *, push: bool) -> dict[str, Any]:
    """Return k6's own summary of one run, whose files are removed."""
    with tempfile.TemporaryDirectory(dir=project().results, prefix="overhead-") as folder:
        env = k6_env(engine, ReferenceApp(engine), load, Path(folder))
        if not push:
            env = {name: value for name, value in env.items() if name != "K6_OUT"}
        process = capture_output(engine.k6(settings, env), "run", "--quiet")
        if process.returncode:
            raise LabError(f"k6 failed: {process.stderr[-2000:]}")
        summary: dict[str, Any] = json.loads((Path(folder) / "k6-summary.json").read_text())
    return summary


def _request_count(summary: dict[str, Any]) -> float:
    """Return the number of requests of the load.

    Raises:
        LabError: some of them failed.
    """
    failed = summary["metrics"]["http_req_failed{scenario:list}"]["values"]["passes"]
    if failed:
        raise LabError(f"{failed:.0f} requests failed: this is no measurement of k6.")
    return float(summary["metrics"]["http_reqs{scenario:list}"]["values"]["count"])


def _ratio_by_cpu(runs: dict[bool, dict[str, Any]]) -> float | None:
    with_push, without_push = runs[True]["cpu_us"], runs[False]["cpu_us"]
    return None if with_push is None else round(without_push / with_push, 3)


def _cpu_of_children() -> float:
    usage = getrusage(RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    try:
        sys.exit(main())
    except LabError as error:
        sys.exit(f"error: {error}")
