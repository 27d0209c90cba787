"""`lab explain --prove`: saturated slices of the stack as it was, and with each of two changes."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from lab_settings.declaration import is_fixed

from load_lab.console import Progress
from load_lab.diagnosis.facts import worker_slots
from load_lab.errors import LabError, UsageError
from load_lab.explain.changes import Change, Work, change_for, control_of
from load_lab.explain.explanation import StoredLoad
from load_lab.interrupts import uninterrupted
from load_lab.load.k6 import run_k6
from load_lab.load.load import Load, new_testid
from load_lab.load.summary import read_summary
from load_lab.load.workloads import WRITING_SCENARIOS
from load_lab.machine.busy_loop import busy_loops
from load_lab.machine.cpus import choose_cpus
from load_lab.results.bottleneck import Diagnosis
from load_lab.results.provenance import write_json
from load_lab.results.result import Result
from load_lab.results.step import Step, step_between
from load_lab.settings import Settings, update_live_settings
from load_lab.stack.engine import Engine, settings_of
from load_lab.stack.exclusive import exclusive_use, prepare
from load_lab.targets.reference.app import ReferenceApp

_ROUNDS, _SLICE_SECONDS = 3, 8
# Around a slice: the change of settings, and k6's start.
_AROUND_SECONDS = 7
# Settings that need a new start, and change what limits the target: by how their names begin.
_OF_THE_TARGET = ("LAB_TARGET_CPUS", "LAB_DATA_")
_LEAST_VUS, _MOST_VUS = 16, 500
# The throughput must move by at least this part of what was predicted, on a logarithmic scale.
_PART = 0.5
# What the unchanged stack answers differs by less between slices, and from the best seconds of a
# run.
_FAR, _FAR_FROM_RUN = 1.5, 2.0
_AGAIN = "Repeat the load. If it breaks again, prove that run"


@dataclass
class _Arm:
    """Slices with a change, or of the base; rates of successful responses per second."""

    change: Change | None
    rates: list[float] = field(default_factory=list)


def proof_of(engine: Engine, load: StoredLoad) -> dict[str, Any]:
    """Prove the cause of a load by an intervention, and store the proof with it.

    Raises:
        UsageError: it has no cause, or one that can't be changed here.
    """
    if not load.is_reference:
        raise UsageError(
            f"{load.name} did not load the hotel API, and `lab` can change only that one's stack. "
            "To verify the cause, give that part more, and measure again."
        )
    folder = load.folder / "proof"
    proof = prove(engine, load.result, load.settings, folder)
    write_json(folder / "proof.json", proof)
    return proof


def prove(engine: Engine, result: Result, settings: Settings, folder: Path) -> dict[str, Any]:
    """Measure whether a change of a result's cause moves the throughput, and a control does not;
    return the document. `settings` are those that it was measured with. The stack is put back as
    it was.

    Raises:
        UsageError: the run has no cause, or its cause can't be changed here.
        LabError: the stack failed.
    """
    work = Work(result.scenario, result.route)
    arms = [_Arm(None), *map(_Arm, _changes(result.bottleneck, settings, work))]
    seconds = _ROUNDS * len(arms) * (_SLICE_SECONDS + _AROUND_SECONDS)
    with (
        exclusive_use(engine, keep_settings=True) as stack,
        Progress(seconds) as progress,
    ):
        base, app = _base(stack.base, settings), _loaded(engine, result)
        for arm in arms:
            # Before anything is measured: the settings are checked together.
            _changed_settings(base, arm.change)
        if result.scenario in WRITING_SCENARIOS:
            prepare(engine, stack)
        for number in range(_ROUNDS):
            for arm in arms if number % 2 == 0 else arms[::-1]:
                name = arm.change.what if arm.change else "unchanged"
                progress.begin(f"round {number + 1} of {_ROUNDS}: {name}", seconds / 9)
                route = (arm.change and arm.change.route) or result.route
                load = _load(result.scenario, route, base)
                arm.rates.append(_slice(app, base, arm.change, load, folder))
    is_comparable = result.capacity is None and result.unit != "iterations"
    return _document(arms, result.goodput if is_comparable else 0.0)


def _changes(found: Diagnosis | None, settings: Settings, work: Work) -> list[Change]:
    """Return the change of the named cause, and the control.

    Raises:
        UsageError: there is no cause, or nothing of the stack can be changed for it.
    """
    if found is None or found.cause is None:
        raise UsageError("This run has no cause to verify. See `lab explain`.")
    shares = {one.name: one.share for one in found.candidates}
    first = change_for(found.cause, settings, shares.get(found.cause, 1.0), work)
    if first is None:
        raise UsageError(
            f"The stack can't be changed to verify: {found.cause}. Next: {found.remedy}."
        )
    return [first, control_of(first, list(shares.items()), settings, work)]


def _base(running: Settings, measured: Settings) -> Settings:
    """Return the running stack's settings with those of the run that the stack can change to.

    Raises:
        UsageError: it can't change to one of them.
    """
    now, then = running.as_env(), measured.as_env()
    fixed = [n for n in then if n.startswith(_OF_THE_TARGET) and then[n] != now[n]]
    if fixed:
        name = fixed[0]
        raise UsageError(
            f"The run had {name}={then[name]}, the running stack has {name}={now[name]}. Stop it "
            f"with `lab down`, set {name}={then[name]}, and start it: lab up"
        )
    # Which engine it was does not matter, nor the addresses.
    names = {n for n in then if then[n] != now[n] and not is_fixed(n)}
    return update_live_settings(running, {name: then[name] for name in sorted(names)})


def _loaded(engine: Engine, result: Result) -> ReferenceApp:
    """Return the app by the way that the run took: by Nginx, or to a server behind it."""
    url = result.target.url if result.target else ""
    if url.endswith("/async"):
        return ReferenceApp(engine, "async")
    is_direct = url and url == settings_of(engine).server_url
    return ReferenceApp(engine, "server" if is_direct else "nginx")


def _load(scenario: str, route: str | None, settings: Settings) -> Load:
    slots = worker_slots(settings.LAB_SERVER, settings.LAB_WORKERS, settings.LAB_THREADS)
    # More than any part admits at once, the doubled one too.
    pool = 0 if settings.LAB_DB_POOL == "off" else int(settings.LAB_DB_POOL)
    vus = min(max(_LEAST_VUS, 3 * (slots or 0), 3 * pool * settings.LAB_WORKERS), _MOST_VUS)
    return Load(
        # Its last requests are cut off: behind a lock, they would take as long as the slice.
        "closed-ramp",
        scenario,
        vus=vus,
        route=route,
        duration=f"{_SLICE_SECONDS}s",
        testid=new_testid("proof"),
    )


def _slice(
    app: ReferenceApp, base: Settings, change: Change | None, load: Load, folder: Path
) -> float:
    """Return the successful responses per second, as fast as the target answers."""
    with _changed(app.engine, base, change):
        run = run_k6(app.engine, app, load, folder / load.testid)
    summary = read_summary(run.summary_file)
    good = summary.value("http_reqs", "count") - summary.value("http_req_failed", "passes")
    return good / summary.seconds if summary.seconds else 0.0


def _changed_settings(base: Settings, change: Change | None) -> Settings:
    assignments = dict(one.split("=", 1) for one in change.settings) if change else {}
    return update_live_settings(base, assignments)


@contextmanager
def _changed(engine: Engine, base: Settings, change: Change | None) -> Iterator[None]:
    with engine.empty_caches(_changed_settings(base, change)):
        pass
    if change is None:
        yield
        return
    try:
        if change.statements:
            engine.sql("postgres", *change.statements)
        with busy_loops(choose_cpus(base).target) if change.busy_loops else nullcontext():
            yield
    finally:
        if change.undo:
            with uninterrupted("Undoing the change first; a moment."):
                engine.sql("postgres", *change.undo)


def _document(arms: Sequence[_Arm], rate_of_run: float) -> dict[str, Any]:
    """Return the document; `rate_of_run` is 0 for a load that did not saturate the stack."""
    base, *changed = arms
    rows = [_row(base, arm) for arm in changed]
    first, control = rows
    proven = bool(first["moved"]) and bool(control["stayed"])
    gone = "" if proven else describe_loss(base.rates, first["ends"], rate_of_run)
    return {
        "proven": proven,
        "gone": bool(gone),
        "headline": f"can't be verified: {first['cause']}. {gone}"
        if gone
        else _headline(first, control, proven=proven),
        "base_rates": [round(rate, 2) for rate in base.rates],
        "changes": rows,
    }


def _row(base: _Arm, arm: _Arm) -> dict[str, Any]:
    step, change = step_between(base.rates, arm.rates), arm.change
    if step is None or change is None:
        raise LabError("No request was answered in time. See `lab logs backend`.")
    return {
        **asdict(change),
        "rates": [round(rate, 2) for rate in arm.rates],
        "step": round(step.factor, 3),
        "error": None if step.error is None else round(step.error, 3),
        "text": step.text,
        "moved": has_moved(step, change.factor),
        "stayed": has_stayed(step, change.factor),
    }


def describe_loss(rates: Sequence[float], ends: tuple[str, str] | None, rate_of_run: float) -> str:
    """Return how the unchanged stack lost what was measured, and what to do; empty if it did not:
    its rates are, in their order, no better than the first one, nor than the run's.
    """
    first, least = rates[0], min(rates[1:])
    if least > _FAR * first:
        why, advice = ends or ("What limited the run has ended", _AGAIN)
        return f"Unchanged, the stack answered {first:.3g}/s, later {least:.3g}/s. {why}. {advice}"
    if rate_of_run and min(rates) > _FAR_FROM_RUN * rate_of_run:
        return (
            f"Unchanged, the stack answers {min(rates):.3g}/s, and the run had {rate_of_run:.3g}/s "
            f"at most: what limited it has ended. {_AGAIN}"
        )
    return ""


def has_moved(step: Step, predicted: float) -> bool:
    """Return whether the throughput moved as predicted: by half of it at least, and certainly."""
    if step.factor <= 0:
        return False
    moved, wanted = math.log(step.factor), math.log(predicted)
    is_certain = step.error is not None and abs(moved) > math.log(1 + step.error)
    return is_certain and moved / wanted >= _PART


def has_stayed(step: Step, predicted: float) -> bool:
    """Return whether the throughput moved by less than half of what is predicted, and certainly by
    less than all of it.
    """
    if step.factor <= 0 or step.error is None:
        return False
    moved = math.copysign(1, math.log(predicted)) * math.log(step.factor)
    wanted = abs(math.log(predicted))
    return moved < _PART * wanted and moved + math.log(1 + step.error) < wanted


def _headline(first: dict[str, Any], control: dict[str, Any], *, proven: bool) -> str:
    moved = f"{first['what']}: {first['text']}, predicted {first['factor']:.2g} ×"
    still = f"control, {control['what']}: {control['text']}"
    # A busy loop takes CPU time from all of the target's services.
    what = f"the target's CPUs ({first['cause']})" if first["busy_loops"] else first["cause"]
    return f"{'proven' if proven else 'not proven'}: {what} ({moved}; {still})"
