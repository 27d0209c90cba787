"""`lab explain --prove`: saturated slices of the target as it was, and with each of two changes."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

from load_lab.console import Progress
from load_lab.errors import LabError, UsageError
from load_lab.explain.changes import Arm, arms_of
from load_lab.explain.explanation import StoredLoad, subject_of
from load_lab.interrupts import uninterrupted
from load_lab.load.k6 import run_k6
from load_lab.load.load import Load, new_testid
from load_lab.load.summary import read_summary
from load_lab.machine.busy_loop import busy_loops
from load_lab.machine.cpus import choose_cpus
from load_lab.results.arms import alternate
from load_lab.results.provenance import write_json
from load_lab.results.ratio import Ratio, ratio_of_repeats
from load_lab.results.result import Result
from load_lab.stack.engine import Engine
from load_lab.targets.change import Change
from load_lab.targets.subject import Instance, Running, Subject

_ROUNDS, _SLICE_SECONDS = 3, 8
# Around a slice: the target's new start, and k6's.
_AROUND_SECONDS = 7
_LEAST_VUS, _MOST_VUS = 16, 500
# The throughput must move by at least this part of what was predicted, on a logarithmic scale.
_PART = 0.5
# What the unchanged target answers differs by less between slices, and from the best seconds of a
# run.
_FAR, _FAR_FROM_RUN = 1.5, 2.0
_AGAIN = "Repeat the load. If it breaks again, prove that run"


def prove_cause(engine: Engine, load: StoredLoad) -> dict[str, Any]:
    """Measure whether a change of a load's cause moves the throughput, and a control does not;
    store the document with the load, and return it. Settings, options and data are put back.

    Raises:
        UsageError: the load has no cause, or nothing can be changed here to verify it.
        LabError: the stack or the target failed.
    """
    result, folder, found = load.result, load.folder / "proof", load.result.bottleneck
    if found is None or found.cause is None:
        raise UsageError("This run has no cause to verify. See `lab explain`.")
    subject = subject_of(engine, load)
    arms = arms_of(subject, found.cause, found, result.route)
    seconds = _ROUNDS * len(arms) * (_SLICE_SECONDS + _AROUND_SECONDS)
    # Before anything is measured: the variants are checked together.
    instances = subject.instances([arm.variant for arm in arms], at_once=False)
    with Progress(seconds) as progress, instances as (instance,):
        for number in range(_ROUNDS):
            for arm in alternate(arms, number):
                what = f"round {number + 1} of {_ROUNDS}: {arm.change.what}"
                progress.begin(what, seconds / _ROUNDS / len(arms))
                slice_load = _load(subject, result, arm.change)
                arm.rates.append(_good_rate(instance, arm, slice_load, folder))
    is_comparable = result.capacity is None and result.unit != "iterations"
    document = _document(arms, result.goodput if is_comparable else 0.0)
    write_json(folder / "proof.json", document)
    return document


def _load(subject: Subject, result: Result, change: Change) -> Load:
    # More than any part admits at once, the doubled one too.
    wanted = 3 * (subject.concurrency or _in_flight(result))
    return Load(
        # Its last requests are cut off: behind a lock, they would take as long as the slice.
        "closed-ramp",
        subject.scenario,
        vus=min(max(_LEAST_VUS, wanted), _MOST_VUS),
        route=change.route or result.route,
        only=result.only,
        duration=f"{_SLICE_SECONDS}s",
        testid=new_testid("proof"),
    )


def _in_flight(result: Result) -> int:
    """Return the requests in flight when the load broke; of a capacity, just below it."""
    until = result.break_point.seconds_into_test if result.break_point else math.inf
    counts = [w.achieved * w.mean_ms for w in result.windows if w.mean_ms and w.end <= until]
    return math.ceil(max(counts, default=result.rps * (result.p95_ms or 0)) / 1000)


def _good_rate(instance: Instance, arm: Arm, load: Load, folder: Path) -> float:
    """Return the successful responses per second, as fast as the target answers."""
    with instance.running(arm.variant) as running, _changed(running, arm.change):
        run = run_k6(running.engine, running.target, load, folder / load.testid)
    summary = read_summary(run.summary_file)
    return summary.good / summary.seconds if summary.seconds else 0.0


@contextmanager
def _changed(running: Running, change: Change) -> Iterator[None]:
    """Change what is no option, for the block."""
    cpus = choose_cpus(running.settings).target
    try:
        if change.statements:
            running.engine.sql("postgres", *change.statements)
        with busy_loops(cpus) if change.busy_loops else nullcontext():
            yield
    finally:
        if change.undo:
            with uninterrupted("Undoing the change first; a moment."):
                running.engine.sql("postgres", *change.undo)


def _document(arms: Sequence[Arm], rate_of_run: float) -> dict[str, Any]:
    """Return the document; `rate_of_run` is 0 for a load that did not saturate the target."""
    base, *changed = arms
    rows = [_row(base, arm) for arm in changed]
    first, control = rows
    proven = bool(first["moved"]) and bool(control["stayed"])
    gone = "" if proven else describe_loss(base.rates, arms[1].change.ends, rate_of_run)
    return {
        "proven": proven,
        "gone": bool(gone),
        "headline": f"can't be verified: {first['cause']}. {gone}"
        if gone
        else _headline(first, control, proven=proven),
        "base_rates": [round(rate, 2) for rate in base.rates],
        "changes": rows,
    }


def _row(base: Arm, arm: Arm) -> dict[str, Any]:
    ratio = ratio_of_repeats(base.rates, arm.rates)
    if ratio is None:
        raise LabError("No request was answered in time. See the target's log.")
    return {
        **asdict(arm.change),
        "cause": arm.cause,
        "factor": arm.factor,
        "rates": [round(rate, 2) for rate in arm.rates],
        "step": round(ratio.ratio, 3),
        "error": None if math.isinf(ratio.resolution) else round(ratio.resolution, 3),
        "text": ratio.text,
        "moved": has_moved(ratio, arm.factor),
        "stayed": has_stayed(ratio, arm.factor),
    }


def describe_loss(rates: Sequence[float], ends: tuple[str, str] | None, rate_of_run: float) -> str:
    """Return how the unchanged target lost what was measured, and what to do; empty if it did not:
    its rates are, in their order, no better than the first one, nor than the run's.
    """
    first, least = rates[0], min(rates[1:])
    if least > _FAR * first:
        why, advice = ends or ("What limited the run has ended", _AGAIN)
        return f"Unchanged, the target answered {first:.3g}/s, later {least:.3g}/s. {why}. {advice}"
    if rate_of_run and min(rates) > _FAR_FROM_RUN * rate_of_run:
        return (
            f"Unchanged, the target answers {min(rates):.3g}/s, and the run had {rate_of_run:.3g}"
            f"/s at most: what limited it has ended. {_AGAIN}"
        )
    return ""


def has_moved(ratio: Ratio, predicted: float) -> bool:
    """Return whether the throughput moved as predicted: by half of it at least, and certainly."""
    is_certain = ratio.low > 1 or ratio.high < 1
    return is_certain and _part(ratio, predicted) >= _PART


def has_stayed(ratio: Ratio, predicted: float) -> bool:
    """Return whether the throughput moved by less than half of what is predicted, and certainly by
    less than all of it.
    """
    is_certain = ratio.high < predicted if predicted > 1 else ratio.low > predicted
    return is_certain and _part(ratio, predicted) < _PART


def _part(ratio: Ratio, predicted: float) -> float:
    """Return which part of the prediction came true, on a logarithmic scale."""
    return math.log(ratio.ratio) / math.log(predicted)


def _headline(first: dict[str, Any], control: dict[str, Any], *, proven: bool) -> str:
    moved = f"{first['what']}: {first['text']}, predicted {first['factor']:.2g} ×"
    still = f"control, {control['what']}: {control['text']}"
    # A busy loop takes CPU time from all of the target's services.
    what = f"the target's CPUs ({first['cause']})" if first["busy_loops"] else first["cause"]
    return f"{'proven' if proven else 'not proven'}: {what} ({moved}; {still})"
