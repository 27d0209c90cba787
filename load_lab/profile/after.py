"""`lab profile --after`: the operation of a stored run that exceeded a limit first, alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from load_lab.console import note
from load_lab.errors import UsageError
from load_lab.load.chosen_target import find_measured
from load_lab.load.workloads import SCENARIO_OF
from load_lab.metrics.windows import WINDOW_SECONDS
from load_lab.profile.profile import ProfileOptions, profile
from load_lab.results.operations import first_exceeded, usual_ms
from load_lab.results.provenance import SCHEMA_VERSION, write_json
from load_lab.results.result import OperationResult, TargetName
from load_lab.results.store import StoredRun, find_run
from load_lab.run.single_run import parse_single_run
from load_lab.settings import Settings, stored_settings
from load_lab.stack.engine import Engine
from load_lab.targets.file import Variation

# In the folder of the stored run; `lab explain` reads it.
FILE = "after-profile.json"
# Scenarios of results whose requests come from a target's mix.
_OF_A_MIX = ("replay", "mix")
_LEAST_RATE = 1.0
_NAMED = 3


@dataclass(frozen=True)
class StoredBreak:
    """A stored run that broke at `rate` requests/s, 0 if it did not: what was loaded."""

    run: StoredRun
    target: TargetName
    scenario: str
    settings: Settings
    rate: float
    operations: Sequence[OperationResult]

    def share_of(self, operation: OperationResult) -> float:
        return operation.requests / sum(each.requests for each in self.operations)


def profile_after(engine: Engine, testid: str, seconds: int) -> dict[str, Any]:
    """Profile the operation of a stored run that exceeded a limit first, and store the answer's
    last line with that run.

    Raises:
        UsageError: there is no such run, it did not break, or its operation can't be sent alone.
        LabError: the target failed.
    """
    stored = find_break(testid)
    operation, why = choose(stored.operations)
    name, target = operation.name, stored.target
    note(f"{name}: {why}.")
    scenario = SCENARIO_OF.get(name, stored.scenario)
    subject = find_measured(engine, target.name, target.url, scenario, stored.settings, Variation())
    if subject.scenario and name not in SCENARIO_OF:
        known = ", ".join(f"{each} (--scenario {SCENARIO_OF[each]})" for each in SCENARIO_OF)
        raise UsageError(
            f"{name} exceeded a limit first, and can't be sent alone. Those that can: {known}. "
            "Profile one: lab profile --scenario NAME"
        )
    rate = round(max(stored.rate * stored.share_of(operation), _LEAST_RATE), 2)
    after = {"testid": testid, "operation": name, "why": why, "rate": rate}
    options = ProfileOptions(seconds, rate, only=None if subject.scenario else name)
    document = profile(subject, options, after)
    answer = {**after, "schema_version": SCHEMA_VERSION, "profile": document["testid"]}
    write_json(stored.run.path.parent / FILE, answer | {"headline": document["headline"]})
    return document


def find_break(testid: str) -> StoredBreak:
    """Return a stored run of `lab k6` or `lab capacity` that exceeded a limit.

    Raises:
        UsageError: it is none, or did not.
    """
    run = find_run(testid)
    if run.kind not in ("run", "capacity"):
        raise UsageError(f"{testid} is no run of `lab k6` or `lab capacity`. Those: lab list runs")
    document = run.document()
    try:
        stored = (_of_run if run.kind == "run" else _of_search)(run, document)
    except (LookupError, TypeError, ValueError) as error:
        raise run.damaged(str(error).splitlines()[0]) from None
    option = f" --target {stored.target.name}" if stored.scenario in _OF_A_MIX else ""
    again = f"lab k6 breakpoint{option}, then lab profile --after with its name"
    if not stored.rate:
        answer = document.get("verdict") or document.get("headline")
        raise UsageError(f"{testid} found no break point ({answer}). Find one: {again}")
    if not sum(each.requests for each in stored.operations):
        raise UsageError(f"{testid} has no values of single operations. Measure them: {again}")
    return stored


def _of_run(run: StoredRun, document: dict[str, Any]) -> StoredBreak:
    single = parse_single_run(document)
    result = single.result
    # A journey has several requests.
    rate = result.rps if result.unit == "iterations" else result.broke_at
    return StoredBreak(
        run,
        result.target or TargetName(name="", url=""),
        result.scenario,
        single.settings,
        rate if result.broke_at and rate else 0.0,
        result.by_operation,
    )


def _of_search(run: StoredRun, document: dict[str, Any]) -> StoredBreak:
    """Return the break of a search: its operations are those of the hold just above."""
    # Absent in results of older versions.
    operations = (document["limit"] or {}).get("operations", ())
    return StoredBreak(
        run,
        TargetName(name=document["target"], url=document["url"]),
        document["scenario"],
        stored_settings(document["settings"], run.name),
        document["rate"] or 0.0,
        [OperationResult.model_validate(each) for each in operations],
    )


def choose(operations: Sequence[OperationResult]) -> tuple[OperationResult, str]:
    """Return the operation that exceeded a limit first, and why it is this one."""
    first = first_exceeded(operations)
    if len(operations) == 1:
        return operations[0], "it is the only operation"
    if not first:
        slowest = max(operations, key=usual_ms)
        why = "no operation exceeded a limit for long enough"
        return slowest, f"{why}; it was the slowest, {usual_ms(slowest):.0f} ms on average"
    if len(first) == 1:
        return first[0], f"it exceeded a limit first, after {first[0].exceeded_after:.0f} s"
    names = ", ".join(each.name for each in first[:_NAMED])
    others = f" and {len(first) - _NAMED} more" if len(first) > _NAMED else ""
    return first[0], (
        f"{names}{others} exceeded a limit within {WINDOW_SECONDS} s of each other; until then it "
        f"took longest, {usual_ms(first[0]):.0f} ms on average"
    )
