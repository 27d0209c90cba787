"""One run of one cell: the server, the loopback's floor, the load, and the results."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

import psutil
from lab_settings.types import cpu_numbers

from load_lab.calibrate.cells import Cell
from load_lab.calibrate.checks import SHARES, Measurement
from load_lab.calibrate.known_server import Reference, reference_server, round_trip_ms
from load_lab.calibrate.noise import ForeignMeter, Noise
from load_lab.console import step
from load_lab.load.generators import samples_file
from load_lab.load.k6 import Run, run_k6
from load_lab.load.load import new_testid
from load_lab.load.process import has_begun
from load_lab.machine.busy_loop import busy_loops
from load_lab.machine.cpus import choose_cpus
from load_lab.machine.noise import StealMeter, mean_share
from load_lab.metrics import queries
from load_lab.metrics.counters import Histogram, quantile
from load_lab.metrics.prometheus import Prometheus
from load_lab.metrics.samples import buckets_off, read_samples
from load_lab.metrics.windows import Bounds
from load_lab.run.measurement import read_durations, read_result
from load_lab.settings import Settings
from load_lab.stack.engine import Engine
from load_lab.targets.target import PlainServer


def measure(engine: Engine, settings: Settings, cell: Cell, folder: Path) -> Measurement:
    """Load the cell's server with k6, and read the run back, as for any target.

    Raises:
        LabError: the server, k6 or Prometheus failed.
    """
    cpus = choose_cpus(settings)
    with reference_server(cell.service_time, cpus.target) as server:
        with step("the loopback's floor"):
            round_trip = round_trip_ms(server.port, cpu_numbers(cpus.load))
        foreign = ForeignMeter(engine.pids() | {"reference": server.pid})
        load_steal = StealMeter(cpu_numbers(cpus.load))
        with step("load"), _starvation(cell, cpus.load, folder):
            run = _run(engine, cell, server, folder)
        noise = Noise(
            steal=mean_share(use.steal for use in run.cpu),
            foreign=foreign.share(),
            cpu_speed=run.cpu_speed,
            load_steal=round(load_steal.share(), 4),
        )
        reference = server.stop()
    with step("reading it back"):
        result = read_result(engine, run, Bounds())
    prometheus = Prometheus(settings.prometheus_url)
    durations = read_durations(run.load.testid, run.started, run.ended, prometheus).total()
    return Measurement(
        result=result,
        reference=reference,
        floor_ms=max(round_trip - reference.probe_ms(), 0.0),
        prometheus_ms=_percentiles(durations),
        prometheus_requests=prometheus.instant(
            queries.requests(queries.load(queries.one_run(run.load.testid)))
        ),
        noise=noise,
        buckets_off=_buckets_off(run, durations) if run.load.samples else None,
    )


def _run(engine: Engine, cell: Cell, server: Reference, folder: Path) -> Run:
    target = PlainServer(
        "calibration", server.url, "the calibration's server", {"reference": server.pid}
    )
    load = cell.load(new_testid(f"calibrate-{cell.name}"))
    return run_k6(engine, target, load, folder)


@contextmanager
def _starvation(cell: Cell, cpus: str, folder: Path) -> Iterator[None]:
    log = folder / ("k6.log" if cell.generators == 1 else "k6-1.log")
    with starvation(cpus, lambda: has_begun(log)) if cell.starved else nullcontext():
        yield


def _buckets_off(run: Run, durations: Histogram) -> int:
    files = [samples_file(run.folder, name) for name in run.load.names]
    return buckets_off(read_samples(files, "list"), durations)


def _percentiles(durations: Histogram) -> dict[int, float | None]:
    """Return the load's percentiles in ms."""
    seconds = {share: quantile(durations, share / 100) for share in SHARES}
    return {share: None if value is None else value * 1000 for share, value in seconds.items()}


# With a niceness this much higher than the other program's, k6 gets about 10 % of the CPU.
# https://github.com/torvalds/linux/blob/v6.1/kernel/sched/core.c (sched_prio_to_weight)
_NICE, _NICEST = 10, 19
_POLL_SECONDS = 0.1


@contextmanager
def starvation(cpus: str, has_begun: Callable[[], bool]) -> Iterator[None]:
    """Starve k6 from the moment at which the load `has_begun` to the end of `with`: earlier, k6
    would take minutes to start.
    """
    over = threading.Event()
    thread = threading.Thread(target=_starve, args=(cpus, has_begun, over), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _starve(cpus: str, has_begun: Callable[[], bool], over: threading.Event) -> None:
    while not has_begun():
        if over.wait(_POLL_SECONDS):
            return
    with busy_loops(cpus):
        for child in psutil.Process().children():
            with suppress(psutil.Error, OSError):
                _yield_to_others(child)
        over.wait()


def _yield_to_others(process: psutil.Process) -> None:
    """Raise the niceness of k6's threads. k6 leads a session, and so a separate process group."""
    if process.name() != "k6":
        return
    niceness = min(os.getpriority(os.PRIO_PROCESS, 0) + _NICE, _NICEST)
    os.setpriority(os.PRIO_PGRP, process.pid, niceness)
    # If the kernel schedules by session (autogroup), a niceness counts only within its session.
    with suppress(OSError):
        Path(f"/proc/{process.pid}/autogroup").write_text(f"{niceness}\n")
