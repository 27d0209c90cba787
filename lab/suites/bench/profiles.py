"""`lab bench --profile`: CPU time of each variant, by service and by function."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.analysis.provenance import relative
from lab.errors import Interrupted, LabError
from lab.host.processes import cpu_seconds
from lab.load.k6 import new_testid
from lab.paths import RESULTS
from lab.profiling.flamegraph import hottest, packages
from lab.profiling.profile import MIN_SAMPLES, backend_pid, shares
from lab.profiling.recorder import Recorder
from lab.suites.bench.rows import Row, Way
from lab.suites.bench.variants import Bench

# The services that a response passes through.
_SERVICES = ("nginx", "backend", "redis", "postgres")
_FUNCTIONS = 10


@dataclass
class Profile:
    """Profile of one variant: CPU in ms per response, by service, and the functions of the server's
    workers. `answers` are the responses that the server produced; a few of them were not read.

    Shares are percent of `samples`. If the server was idle there are none, and `file`, py-spy's
    flame graph, is None.
    """

    way: str
    answers: int = 0
    cpu_ms: dict[str, float] = field(default_factory=dict)
    samples: int = 0
    packages: dict[str, float] = field(default_factory=dict)
    hottest: list[dict[str, Any]] = field(default_factory=list)
    file: str | None = None
    wrong: str = ""


def profiled(bench: Bench, row: Row, way: Way, seconds: float) -> Profile:
    """Run one load of the variant with py-spy. Errors are recorded: no result depends on it."""
    folder = RESULTS / new_testid(f"bench-{row.name}-{way.name}")
    folder.mkdir(parents=True)
    found = Profile(way.name)
    try:
        found = _profile(bench, way, seconds, folder / "profile.svg")
    except Interrupted:
        raise
    except (LabError, OSError, subprocess.TimeoutExpired) as error:
        found.wrong = str(error)
    finally:
        if found.file is None:
            shutil.rmtree(folder)
    return found


def _profile(bench: Bench, way: Way, seconds: float, svg: Path) -> Profile:
    used: dict[str, float] = {}
    sample = bench.sample(way, seconds, _recording(bench, svg, used))
    # The server also responded to the requests that were in progress when wrk stopped.
    answers = sample.requests + (way.connections if way.generator == "wrk" else 0)
    cpu_ms = {name: round(spent / answers * 1000, 3) for name, spent in used.items()}
    found = Profile(way.name, answers, cpu_ms, wrong=sample.wrong)
    return _with_functions(found, svg) if svg.exists() else found


@contextmanager
def _recording(bench: Bench, svg: Path, used: dict[str, float]) -> Iterator[None]:
    """Record the CPU seconds of each service in `used`, and py-spy's picture in `svg`."""
    roots = {name: pid for name, pid in bench.engine.pids().items() if name in _SERVICES}
    before = cpu_seconds(roots)
    with Recorder(backend_pid(bench.engine), svg):
        yield
        bench.wait_until_idle()
        after = cpu_seconds(roots)
    used.update({name: after[name] - before[name] for name in _SERVICES if name in roots})


def _with_functions(profile: Profile, svg: Path) -> Profile:
    profile.samples, found = hottest(svg)
    # With fewer samples the server had no requests, and shares of its other work mean nothing.
    if profile.samples >= MIN_SAMPLES:
        count = packages(found).most_common()
        profile.packages = {name: round(n / profile.samples * 100, 1) for name, n in count if n}
        profile.hottest = [shares(hot, profile.samples) for hot in found[:_FUNCTIONS]]
        profile.file = relative(svg)
    return profile
