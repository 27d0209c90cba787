"""How accurate `lab capacity` is: on simulated targets, on a queue of exactly 200/s, and on the
running stack. `make bench-capacity` runs it; a run that was stopped goes on where it ended.
"""

import argparse
import math
import time
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from statistics import mean, median, stdev

from rich.table import Table
from support.simulated_targets import KINDS, SimulatedLoads, Target, capacity

from load_lab.calibrate.known_server import reference_server
from load_lab.calibrate.service_times import ServiceTime
from load_lab.capacity.measurement import CapacityOptions, run
from load_lab.capacity.search import find_capacity
from load_lab.capacity.timeline import Slo
from load_lab.console import out
from load_lab.machine.cpus import choose_cpus
from load_lab.options import current_engine
from load_lab.paths import project
from load_lab.stack.engine import Engine, settings_of
from load_lab.stack.locks import measurement_lock
from load_lab.targets.reference.app import ReferenceApp
from load_lab.targets.target import PlainServer
from tests.benchmarks.records import Record, by_series, each_missing, missing, share, store

NAME = "capacity"
QUEUE, DETAIL, TRUTH = "queue of 200/s, k6", "detail, quick code, k6", "truth"
_QUEUE_RATE = 200.0
_BATCH = 20


def simulate(kind: str, seed: int) -> Record:
    """Return one search on a simulated target."""
    target = Target(KINDS[kind], seed)
    slo = KINDS[kind].slo
    found = find_capacity(SimulatedLoads(target, slo), slo)
    # A capacity is that at the mean speed of its time.
    speed = target.speed.work(target.time) / target.time if KINDS[kind].wandering else 1.0
    return {
        "rate": found.rate,
        "low": found.low,
        "high": found.high,
        "confirmed": found.confirmed,
        "seconds": found.seconds,
        "speed": speed,
    }


def _simulate(argument: tuple[str, int]) -> Record:
    return simulate(*argument)


def _truth(kind: str) -> float:
    return capacity(KINDS[kind])


def run_simulations(runs: int) -> None:
    with ProcessPoolExecutor() as pool:
        known = {record["kind"] for record in by_series(NAME).get(TRUTH, [])}
        lacking = [kind for kind in KINDS if runs and kind not in known]
        for kind, rate in zip(lacking, pool.map(_truth, lacking), strict=True):
            store(NAME, TRUTH, len(known), {"kind": kind, "rate": rate})
        for kind in KINDS:
            numbers = missing(NAME, kind, runs)
            for start in range(0, len(numbers), _BATCH):
                batch = numbers[start : start + _BATCH]
                found = pool.map(_simulate, [(kind, number) for number in batch])
                for number, record in zip(batch, found, strict=True):
                    store(NAME, kind, number, record)


def run_queue(engine: Engine, runs: int) -> None:
    settings = settings_of(engine)
    for number in each_missing(NAME, QUEUE, runs):
        service = ServiceTime("queue", 1000 / _QUEUE_RATE)
        with reference_server(service, choose_cpus(settings).target) as server:
            target = PlainServer(
                "calibration", server.url, "the calibration's server", {"reference": server.pid}
            )
            options = CapacityOptions(Slo(0.3), "list")
            _store_real(QUEUE, number, run(engine, target, options))
            server.stop()


def run_detail(engine: Engine, runs: int) -> None:
    for number in each_missing(NAME, DETAIL, runs):
        options = CapacityOptions(Slo(0.3), "detail")
        _store_real(DETAIL, number, run(engine, ReferenceApp(engine), options))


def _store_real(series: str, number: int, document: Record) -> None:
    names = ("rate", "low", "high", "seconds", "cpu_speed", "speed_spread", "notes")
    record = {name: document[name] for name in names}
    record["work_speed"] = _work_speed(document)
    confirmed = document["outcome"] == "confirmed"
    store(NAME, series, number, {**record, "confirmed": confirmed, "started": document["started"]})
    # Two runs in the same second would share their folder.
    time.sleep(1)


def _work_speed(document: Record) -> float | None:
    """Return the requests per CPU second of the target, over all holds; None where the CPU is not
    the limit.
    """
    known = [(hold["speed"], hold["seconds"]) for hold in document["holds"] if hold["speed"]]
    seconds = sum(length for _, length in known)
    return sum(speed * length for speed, length in known) / seconds if seconds else None


def table() -> Table:
    """Return the table of all runs so far."""
    found = by_series(NAME)
    truths = {record["kind"]: record["rate"] for record in found.get(TRUTH, [])} | {
        QUEUE: _QUEUE_RATE
    }
    result = Table(title=f"lab capacity, {datetime.now(UTC):%d %B %Y}", title_justify="left")
    for column in (
        *("target", "n", "capacity", "within 5 %", "within 3 %", "error, 5 to 95 %", "confirmed"),
        *("of those within 5 %", "interval covers", "±", "seconds, median", "95 %"),
    ):
        result.add_column(column, justify="left" if column == "target" else "right")
    for series, runs in found.items():
        if series in truths and series != TRUTH:
            result.add_row(series, *_cells(runs, truths[series]))
    return result


def _cells(runs: list[Record], truth: float) -> list[str]:
    errors = sorted(_error(run, truth) for run in runs)
    confirmed = [run for run in runs if run["confirmed"]]
    seconds = sorted(run["seconds"] for run in runs)
    low, high = errors[int(0.05 * len(errors))], errors[math.ceil(0.95 * len(errors)) - 1]
    half_widths = [(run["high"] - run["low"]) / 2 / run["rate"] for run in runs if run["rate"]]
    covered = share(runs, lambda run: run["low"] <= truth * run.get("speed", 1.0) <= run["high"])
    good = share(confirmed, lambda run: abs(_error(run, truth)) <= 0.05)
    return [
        str(len(runs)),
        f"{truth:.1f}/s",
        f"{share(errors, lambda error: abs(error) <= 0.05):.0%}",
        f"{share(errors, lambda error: abs(error) <= 0.03):.0%}",
        f"{low:+.1%} to {high:+.1%}",
        f"{len(confirmed) / len(runs):.0%}",
        f"{good:.0%}" if confirmed else "–",
        f"{covered:.0%}",
        f"{median(half_widths):.1%}" if half_widths else "–",
        f"{median(seconds):.0f}",
        f"{seconds[math.ceil(0.95 * len(seconds)) - 1]:.0f}",
    ]


def _error(run: Record, truth: float) -> float:
    if not truth or not run["rate"]:
        return 0.0 if not truth and not run["rate"] else 9.0
    return run["rate"] / truth / run.get("speed", 1.0) - 1


def repeatability() -> str:
    """Return how much the capacity of the same code varies, and the machine's own speed: by a fixed
    computation, and by the CPU time that the same requests need.
    """
    runs = by_series(NAME).get(DETAIL, [])
    if len(runs) < 2:
        return f"{DETAIL}: {len(runs)} runs, too few for a spread"
    rates = [run["rate"] for run in runs]
    works = [run["work_speed"] or math.nan for run in runs]
    in_cores = [rate / work for rate, work in zip(rates, works, strict=True)]
    return (
        f"{DETAIL}: {len(runs)} runs, mean {mean(rates):.1f}/s, coefficient of variation "
        f"{_variation(rates)}; that of the machine's own speed "
        f"{_variation([run['cpu_speed'] for run in runs])} (a fixed computation), "
        f"{_variation(works)} (requests per CPU second of the target); of capacity ÷ the latter "
        f"{_variation(in_cores)}; confirmed {share(runs, lambda r: r['confirmed']):.0%}"
    )


def _variation(values: list[float]) -> str:
    return f"{stdev(values) / mean(values):.1%}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulated", type=int, default=200, help="runs of each simulated kind")
    parser.add_argument("--queue", type=int, default=10, help="real runs on the queue")
    parser.add_argument("--detail", type=int, default=10, help="real runs on the stack")
    arguments = parser.parse_args()
    run_simulations(arguments.simulated)
    if arguments.queue or arguments.detail:
        engine = current_engine()
        with measurement_lock():
            run_queue(engine, arguments.queue)
            run_detail(engine, arguments.detail)
    out.print(table())
    out.print(repeatability())
    out.print(f"Runs: {project().results}/bench-{NAME}.jsonl. Remove it to start anew.")


if __name__ == "__main__":
    main()
