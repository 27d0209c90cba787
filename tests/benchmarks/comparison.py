"""How well `lab compare` tells: the same code from itself, and code that needs 5 % more CPU.

`make bench-compare` runs it; a run that was stopped goes on where it ended.
"""

import argparse
import math
import random
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from statistics import mean, stdev
from tempfile import TemporaryDirectory
from threading import Timer

from rich.table import Table
from support.commits import commit_with
from support.shop_with_database.target import shop_with_server

from load_lab.compare.blocks import CompareOptions
from load_lab.compare.comparison import run
from load_lab.compare.ratios import Verdict, is_clear, judge
from load_lab.console import out
from load_lab.paths import ROOT, current_state, project
from load_lab.results.ratio import Pair, ratio_of_pairs
from load_lab.settings import Settings, load_settings, update_settings
from load_lab.stack.native import NativeEngine
from load_lab.targets.own import OwnSubject
from load_lab.targets.reference.subject import ReferenceSubject
from load_lab.targets.reference.variants import find_variant
from load_lab.targets.subject import Variant
from tests.apps.pretix_site import on_one_server as pretix_on_one_server
from tests.benchmarks.records import Record, by_series, each_missing, share, store

NAME = "compare"
SAME, MORE, SPEED = "A = A", "B needs 5 % more CPU", "the CPU's speed changes"
THRESHOLD, BUDGET = 0.05, 360
_SIMULATED_SESSIONS, _MANY_SESSIONS = 100, 1000
_NOISES = (0.01, 0.02, 0.05, 0.2)
# An app with a database server for each instance, and a site whose instances share one; with the
# turns of about 5 % of a request.
_APPS = {
    "shop": (lambda folder: nullcontext(shop_with_server(folder)), 220),
    "pretix": (pretix_on_one_server, 11_500),
}
# After the start of both stacks, and two of at least four blocks; 30 % of a request.
_SLOW_AFTER_SECONDS, _SLOWING_TURNS = 110, 120_000

# Added to a middleware that every request passes: work of a constant number of turns, and a file
# with the CPU time that it took, so that the true ratio is known.
_MIDDLEWARE = "backend/observability/middleware.py"
_BURN = """

import os as _os
from pathlib import Path as _Path

_burnt = [0.0, 0]


def _burn() -> None:
    if not _Path("{switch}").exists():
        return
    started = time.thread_time()
    sum(i * i for i in range({turns}))
    _burnt[0] += time.thread_time() - started
    _burnt[1] += 1
    if _burnt[1] % 10 == 0:
        _Path("{folder}", str(_os.getpid())).write_text(f"{{_burnt[0]}} {{_burnt[1]}}")
"""
_CALL, _CALL_BURNT = "    pool_waits.count()\n", "    pool_waits.count()\n    _burn()\n"


def _burning(turns: int, folder: Path, switch: Path = ROOT) -> Variant:
    """Return a commit whose requests need that much more work, once the file `switch` exists."""
    text = (ROOT / _MIDDLEWARE).read_text()
    assert _CALL in text
    changed = text.replace(_CALL, _CALL_BURNT) + _BURN.format(
        turns=turns, folder=folder, switch=switch
    )
    return find_variant(commit_with({_MIDDLEWARE: changed}))


def _burnt_ms(folder: Path) -> float:
    """Return the mean CPU time of the work per request, by the processes that did it."""
    pairs = [file.read_text().split() for file in folder.iterdir()]
    return 1000 * sum(float(s) for s, _ in pairs) / sum(int(count) for _, count in pairs)


def _compare(base: Settings, a: Variant, b: Variant) -> Record:
    subject = ReferenceSubject(NativeEngine(current_state()), "detail", base=base)
    return run(subject, CompareOptions(a, b, "detail", BUDGET, THRESHOLD), at_once=True)


def _store(series: str, number: int, document: Record, truth: float) -> None:
    ratio = document["ratios"]["cpu_ms"]
    blocks = [block for block in document["blocks"] if not block["control"]]
    store(
        NAME,
        series,
        number,
        {
            "started": document["started"],
            "verdict": document["verdict"],
            "ratio": ratio and ratio["ratio"],
            "low": ratio and ratio["low"],
            "high": ratio and ratio["high"],
            "truth": truth,
            "seconds": document["seconds"],
            "blocks": [block["ratio"] for block in blocks],
            "controls": document["control"],
            "cpu_ms": document["sides"]["a"]["cpu_ms"],
            "course": [block["a"]["cpu_ms"] for block in document["blocks"]],
        },
    )
    # Two sessions in the same second would share their folder.
    time.sleep(1)


def run_same(base: Settings, runs: int) -> None:
    for number in each_missing(NAME, SAME, runs):
        _store(SAME, number, _compare(base, Variant("."), Variant(".")), 1.0)


def run_more(base: Settings, runs: int, turns: int) -> None:
    for number in each_missing(NAME, MORE, runs):
        folder = project().results / f"burnt-{number}"
        folder.mkdir(parents=True, exist_ok=True)
        document = _compare(base, find_variant("HEAD"), _burning(turns, folder))
        truth = 1 + _burnt_ms(folder) / document["sides"]["a"]["cpu_ms"]
        _store(MORE, number, document, truth)


def run_speed(base: Settings, runs: int) -> None:
    """Compare code with itself whose requests need 1.3 times the CPU time from the middle of the
    session on, as on CPUs that have become slower: nobody can slow down those of every machine.
    The CPU time of A by block shows it.
    """
    for number in each_missing(NAME, SPEED, runs):
        folder = project().results / f"slowed-{number}"
        folder.mkdir(parents=True, exist_ok=True)
        switch = folder.with_suffix(".on")
        switch.unlink(missing_ok=True)
        variant = _burning(_SLOWING_TURNS, folder, switch)
        slowing = Timer(_SLOW_AFTER_SECONDS, switch.touch)
        slowing.start()
        document = _compare(base, variant, variant)
        slowing.cancel()
        _store(SPEED, number, document, 1.0)


def run_app(name: str, same: int, more: int) -> None:
    """Compare an app that is not the hotel API: two instances at once."""
    engine = NativeEngine(current_state())
    engine.up(update_settings(load_settings(), ["LAB_REFERENCE_APP=off"]))
    find_target, turns = _APPS[name]
    try:
        with TemporaryDirectory() as folder, find_target(Path(folder)) as target:
            subject = OwnSubject(engine, target)
            for number in range(max(same, more)):
                _run_same_app(subject, f"{name}, {SAME}", min(number + 1, same))
                _run_more_app(subject, f"{name}, {MORE}", min(number + 1, more), turns)
    finally:
        engine.down()


def _run_same_app(subject: OwnSubject, series: str, runs: int) -> None:
    for number in each_missing(NAME, series, runs):
        _store(series, number, _compare_app(subject, "."), 1.0)


def _run_more_app(subject: OwnSubject, series: str, runs: int, turns: int) -> None:
    for number in each_missing(NAME, series, runs):
        burnt = project().results / f"burnt-{subject.name}-{number}"
        burnt.mkdir(parents=True, exist_ok=True)
        document = _compare_app(subject, f"MORE={turns},FOLDER={burnt}")
        truth = 1 + _burnt_ms(burnt) / document["sides"]["a"]["cpu_ms"]
        _store(series, number, document, truth)


def _compare_app(subject: OwnSubject, b: str) -> Record:
    variants = (subject.variant("."), subject.variant(b))
    return run(subject, CompareOptions(*variants, None, BUDGET, THRESHOLD), at_once=True)


def simulated_false_alarms() -> tuple[int, int]:
    """Return how many sessions drawn from the recorded noise of A = A find a difference, and of
    how many.
    """
    noise = [
        math.log(ratio) for record in by_series(NAME).get(SAME, []) for ratio in record["blocks"]
    ]
    if len(noise) < 2:
        return 0, 0
    verdicts = [
        _simulated_verdict(seed, lambda rng: rng.choice(noise) - mean(noise))
        for seed in range(_SIMULATED_SESSIONS)
    ]
    return sum(verdict in ("slower", "faster") for verdict in verdicts), _SIMULATED_SESSIONS


def _simulated_verdict(seed: int, draw: Callable[[random.Random], float]) -> Verdict:
    """Return the verdict of a session on equal variants, whose log ratios are drawn."""
    rng, pairs = random.Random(seed), list[Pair]()
    while len(pairs) < 12 and not is_clear(pairs, THRESHOLD):
        pairs.append(Pair(1.0, math.exp(draw(rng)), swapped=len(pairs) % 2 == 1))
    return judge(ratio_of_pairs(pairs), THRESHOLD)


def alarms_by_noise() -> Iterator[str]:
    """Yield how often equal variants seem to differ, by the noise of a block."""
    for noise in _NOISES:
        verdicts = [
            _simulated_verdict(seed, lambda rng, noise=noise: rng.gauss(0, noise))  # type: ignore[misc]
            for seed in range(_MANY_SESSIONS)
        ]
        shares = {v: verdicts.count(v) / len(verdicts) for v in ("slower", "faster")}
        yield f"sd of a block {noise:.0%}: " + ", ".join(f"{v} {s:.1%}" for v, s in shares.items())


def table() -> Table:
    result = Table(title="lab compare", title_justify="left")
    for column in (
        *("series", "n", "slower", "faster", "not slower", "can't tell", "interval covers"),
        *("error of the ratio, mean", "spread", "sd of a block", "±", "seconds, mean"),
    ):
        result.add_column(column, justify="left" if column == "series" else "right")
    for series, runs in by_series(NAME).items():
        result.add_row(series, *_cells(runs))
    return result


def _cells(runs: list[Record]) -> list[str]:
    known = [run for run in runs if run["ratio"]]
    errors = [run["ratio"] / run["truth"] - 1 for run in known]
    logs = [math.log(ratio / run["ratio"]) for run in known for ratio in run["blocks"]]
    widths = [math.sqrt(run["high"] / run["low"]) - 1 for run in known]
    return [
        str(len(runs)),
        *(
            str(sum(run["verdict"] == verdict for run in runs))
            for verdict in ("slower", "faster", "not slower", "can't tell")
        ),
        f"{share(known, lambda run: run['low'] <= run['truth'] <= run['high']):.0%}",
        f"{mean(errors):+.2%}" if errors else "–",
        f"{stdev(errors):.2%}" if len(errors) > 1 else "–",
        f"{stdev(logs):.2%}" if len(logs) > 1 else "–",
        f"{mean(widths):.1%}" if widths else "–",
        f"{mean(run['seconds'] for run in runs):.0f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--same", type=int, default=20, help="sessions of A = A")
    parser.add_argument("--more", type=int, default=20, help="sessions with 5 %% more CPU in B")
    parser.add_argument("--speed", type=int, default=1, help="sessions with a change of speed")
    parser.add_argument("--turns", type=int, default=14_000, help="turns of B's additional loop")
    parser.add_argument("--app", choices=_APPS, help="these sessions of another app")
    arguments = parser.parse_args()
    if arguments.app:
        run_app(arguments.app, arguments.same, arguments.more)
    else:
        run_reference_app(arguments)
    out.print(table())
    for series, runs in by_series(NAME).items():
        if series.endswith(MORE):
            out.print(*(f"{series}: {_found(record)}" for record in runs), sep="\n")
    for record in by_series(NAME).get(SPEED, []):
        course = ", ".join(f"{ms:.1f}" for ms in record["course"])
        out.print(f"{SPEED}: CPU ms per request of A, by block: {course}; {record['verdict']}")
    alarms, sessions = simulated_false_alarms()
    out.print(f"False alarms in sessions drawn from the blocks of {SAME}: {alarms} of {sessions}")
    out.print(
        "False alarms of simulated sessions on noisier machines:", *alarms_by_noise(), sep="\n"
    )
    out.print(f"Runs: {project().results}/bench-{NAME}.jsonl. Remove it to start anew.")


def run_reference_app(arguments: argparse.Namespace) -> None:
    base = update_settings(load_settings(), ["LAB_DETAIL=fast"])
    for number in range(max(arguments.same, arguments.more)):
        # In turn, so that a stopped run has some of both.
        run_same(base, min(number + 1, arguments.same))
        run_more(base, min(number + 1, arguments.more), arguments.turns)
    run_speed(base, arguments.speed)


def _found(record: Record) -> str:
    return (
        f"true {record['truth']:.4f}, found {record['ratio']} "
        f"({record['low']} to {record['high']}), {record['verdict']}"
    )


if __name__ == "__main__":
    main()
