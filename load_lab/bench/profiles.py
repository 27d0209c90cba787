"""`lab bench --profile`: CPU time of each variant, by service and by function."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from load_lab.bench.rows import Row, Variant
from load_lab.bench.variants import Bench
from load_lab.errors import Interrupted, LabError
from load_lab.load.load import new_testid
from load_lab.machine.cpus import choose_cpus
from load_lab.machine.processes import cpu_seconds
from load_lab.paths import project
from load_lab.profile.flamegraph import hottest, packages
from load_lab.profile.ranking import MIN_SAMPLES, shares
from load_lab.profile.recorder import Recorder, find_server
from load_lab.results.provenance import relative
from load_lab.stack.engine import settings_of
from load_lab.targets.reference.app import at_entry

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


def profile_variant(bench: Bench, row: Row, variant: Variant, seconds: float) -> Profile:
    """Run one load of the variant with py-spy. Errors are recorded: no result depends on it."""
    folder = project().results / new_testid(f"bench-{row.name}-{variant.name}")
    folder.mkdir(parents=True)
    profile = Profile(variant.name)
    try:
        profile = _measure_profile(bench, variant, seconds, folder / "profile.svg")
    except Interrupted:
        raise
    except (LabError, OSError, subprocess.TimeoutExpired) as error:
        profile.wrong = str(error)
    finally:
        if profile.file is None:
            shutil.rmtree(folder)
    return profile


def _measure_profile(bench: Bench, variant: Variant, seconds: float, svg: Path) -> Profile:
    seconds_by_service: dict[str, float] = {}
    sample = bench.sample(variant, seconds, _record(bench, svg, seconds_by_service))
    # The server also responded to the requests that were in progress when wrk stopped.
    answers = sample.requests + (variant.connections if variant.generator == "wrk" else 0)
    cpu_ms = {
        name: round(service_seconds / answers * 1000, 3)
        for name, service_seconds in seconds_by_service.items()
    }
    profile = Profile(variant.name, answers, cpu_ms, wrong=sample.wrong)
    return _with_functions(profile, svg) if svg.exists() else profile


@contextmanager
def _record(bench: Bench, svg: Path, seconds_by_service: dict[str, float]) -> Iterator[None]:
    """Record the CPU seconds of each service in `used`, and py-spy's picture in `svg`."""
    roots = {name: pid for name, pid in bench.engine.pids().items() if name in _SERVICES}
    before = cpu_seconds(roots)
    cpus = choose_cpus(settings_of(bench.engine)).load
    with Recorder(find_server(at_entry(bench.engine, "nginx")), svg, cpus):
        yield
        bench.wait_until_idle()
        after = cpu_seconds(roots)
    seconds_by_service.update(
        {name: after[name] - before[name] for name in _SERVICES if name in roots}
    )


def _with_functions(profile: Profile, svg: Path) -> Profile:
    profile.samples, _, functions = hottest(svg)
    # With fewer samples the server had no requests, and shares of its other work mean nothing.
    if profile.samples >= MIN_SAMPLES:
        counts = packages(functions).most_common()
        profile.packages = {
            name: round(samples / profile.samples * 100, 1) for name, samples in counts if samples
        }
        profile.hottest = [shares(function, profile.samples) for function in functions[:_FUNCTIONS]]
        profile.file = relative(svg)
    return profile
