"""wrk: the generator for loads in which k6 itself would be the limit."""

import json
import os
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any

from load_lab.bench.sample import Sample
from load_lab.errors import LabError
from load_lab.machine.busy_loop import BusyMeter
from load_lab.machine.cpus import Cpus
from load_lab.paths import current_state
from load_lab.stack.native import die_with_parent
from load_lab.stack.native.program_paths import library_env, require
from load_lab.stack.native.supervision import mark

_SCRIPTS = Path(__file__).parent / "scripts"
_REPORT = re.compile(r"^REPORT (\{.*\})$", re.MULTILINE)
# One, since a script counts its requests in one thread. If the thread is full, the sample is void.
_THREADS = 1
# Longer than a naive response waits for those of the other clients.
_TIMEOUT_SECONDS = 30
# wrk stops on time, even with requests in progress; it never takes much longer.
_GRACE_SECONDS = 30


@dataclass(frozen=True)
class Load:
    """The requests that wrk sends, and for how long. `env` is for `script`."""

    url: str
    connections: int
    seconds: float
    headers: dict[str, str] = field(default_factory=dict)
    script: str = "report.lua"
    env: dict[str, str] = field(default_factory=dict)


def measure(load: Load, cpus: Cpus) -> Sample:
    """Run wrk on the load's CPUs, once.

    Raises:
        LabError: wrk failed.
    """
    before, meter = cpu_of_children(), BusyMeter(cpus)
    output = _run(load, cpus)
    busy = meter.busy(cpu_of_children() - before, _THREADS)
    return sample_of(_parse_report(output), busy)


def sample_of(report: dict[str, Any], busy: Any) -> Sample:
    """Return the sample of report.lua's output; a failed response makes it wrong."""
    seconds = report["microseconds"] / 1e6
    requests = report["requests"]
    return Sample(
        rate=requests / seconds if seconds else 0.0,
        bytes=report["bytes"] / requests if requests else 0.0,
        requests=requests,
        seconds=seconds,
        busy=busy,
        wrong=_wrong(report),
    )


def _wrong(report: dict[str, Any]) -> str:
    if not report["requests"]:
        return "no request was answered"
    errors = {
        "answers of 400 and above": report["refused"],
        "socket errors": report["socket_errors"],
    }
    return ", ".join(f"{count} {what}" for what, count in errors.items() if count)


def _run(load: Load, cpus: Cpus) -> str:
    process = subprocess.run(
        [
            *die_with_parent.argv_prefix(),
            *("taskset", "-c", cpus.load, str(require("wrk"))),
            *("-t", str(_THREADS), "-c", str(load.connections)),
            *("-d", f"{max(round(load.seconds), 1)}s", "--timeout", f"{_TIMEOUT_SECONDS}s"),
            *("-s", str(_SCRIPTS / load.script)),
            *(part for name, value in load.headers.items() for part in ("-H", f"{name}: {value}")),
            load.url,
        ],
        env={
            **os.environ,
            **library_env(),
            **mark(current_state(), load=True),
            **load.env,
            "BENCH_REPORT": str(_SCRIPTS / "report.lua"),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=load.seconds + _GRACE_SECONDS,
    )
    if process.returncode:
        raise LabError(f"wrk failed with exit code {process.returncode}: {process.stderr[-500:]}")
    return process.stdout


def _parse_report(output: str) -> dict[str, Any]:
    match = _REPORT.search(output)
    if match is None:
        raise LabError(f"wrk did not print what scripts/report.lua should: {output[-500:]}")
    return dict(json.loads(match[1]))


def cpu_of_children() -> float:
    """Return the CPU seconds of all child processes that have ended."""
    usage = getrusage(RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
