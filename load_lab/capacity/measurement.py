"""The steps of `lab capacity` around its search: the target, the order and the document."""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any

from load_lab.capacity.loads import K6Loads, LoadDetails
from load_lab.capacity.outcomes import Alone, Capacity, Hold
from load_lab.capacity.search import find_capacity
from load_lab.capacity.timeline import Second, Slo
from load_lab.console import Progress, note
from load_lab.diagnosis.diagnosis import limit_with
from load_lab.errors import Interrupted, LabError, UsageError
from load_lab.interrupts import interruptible
from load_lab.paths import project
from load_lab.results.bottleneck import Diagnosis
from load_lab.results.formatting import milliseconds, rate
from load_lab.results.limit import Limit
from load_lab.results.provenance import SCHEMA_VERSION, host, relative, write_json
from load_lab.results.result import CAPACITY, CapacityResult, Result, TargetName
from load_lab.settings import Settings
from load_lab.stack.engine import Engine, settings_of
from load_lab.targets.declared import PUBLIC_RATE, is_public
from load_lab.targets.target import Target

# Two ramps, and the two holds of a confirmation.
MIN_BUDGET_SECONDS = 120
# After the budget, the last hold and the readback.
LAST_SECONDS = 25


@dataclass(frozen=True)
class CapacityOptions:
    """What to search: the SLO, the requests (a scenario, or operations of a target's mix), how
    long at most in seconds, and how precisely, as a share of the capacity.
    """

    slo: Slo
    scenario: str | None = None
    only: str | None = None
    budget: float = 240
    precision: float = 0.05


def validate_options(options: CapacityOptions, settings: Settings) -> None:
    """Check the options before anything is measured.

    Raises:
        UsageError: every response would meet the SLO; or the budget is too short.
    """
    limit, timeout = options.slo.p95_seconds, settings.LAB_CLIENT_TIMEOUT
    if limit >= timeout:
        raise UsageError(
            f"--p95 {limit:g}s is not below LAB_CLIENT_TIMEOUT={timeout} s: later responses fail. "
            "Lower it, or raise that setting."
        )
    require_budget(options.budget, MIN_BUDGET_SECONDS)


def require_budget(budget: float, least: int) -> None:
    """Check that there is time for an answer.

    Raises:
        UsageError: there is not.
    """
    if budget < least:
        raise UsageError(
            f"--budget {budget:g}s is too short for an answer. Set it to {least}s or more."
        )


def run(engine: Engine, target: Target, options: CapacityOptions) -> dict[str, Any]:
    """Search the target's capacity, store the document, and return it.

    Raises:
        UsageError: an option is out of range.
        LabError: the stack or the target failed.
        Interrupted: the user pressed Ctrl-C; the loads so far are stored.
    """
    with Progress(options.budget + LAST_SECONDS) as progress:
        progress.begin("capacity", options.budget + LAST_SECONDS)
        return search(engine, target, options, new_folder(), progress.show_step)


def new_folder() -> Path:
    return project().results / f"capacity-{datetime.now(UTC):%Y%m%d-%H%M%S}"


def search(
    engine: Engine,
    target: Target,
    options: CapacityOptions,
    folder: Path,
    show: Callable[[str], None],
) -> dict[str, Any]:
    """Search the target's capacity, store the document in `folder`, and return it.

    Raises:
        UsageError: an option is out of range, or the target is on a public network.
        LabError: the stack or the target failed.
        Interrupted: the user pressed Ctrl-C; the loads so far are stored.
    """
    if is_public(target.url):
        raise UsageError(
            f"{target.url} is not on your network, so it gets {PUBLIC_RATE} requests/s at most: "
            "too few to find its capacity. Measure a copy of it on your network."
        )
    validate_options(options, settings_of(engine))
    head = _head(engine, settings_of(engine), target, options)
    loads = K6Loads(engine, target, options.slo, options.scenario, folder, options.only, show)
    holds = list[Hold]()
    try:
        with interruptible():
            capacity = find_capacity(
                loads,
                options.slo,
                budget=options.budget,
                precision=options.precision,
                report=holds.append,
            )
    except LabError as error:
        if holds:
            _store(folder, {**head, **_no_answer(holds, error)}, holds, loads.details)
            note(f"The holds so far are in {relative(folder)}.")
        raise
    document = {**head, **_answer(capacity, options.slo, loads.details)}
    document["notes"] += [f"not counted: {each}" for each in loads.not_counted]
    return _store(folder, document, holds, loads.details)


def _head(
    engine: Engine, settings: Settings, target: Target, options: CapacityOptions
) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "target": target.name,
        "url": target.url,
        "scenario": options.scenario or "mix",
        "only": options.only,
        "slo": {
            "p95_ms": round(1000 * options.slo.p95_seconds),
            "errors": options.slo.max_errors,
        },
        "budget_seconds": options.budget,
        "arrivals": "evenly spaced",
        "settings": settings.model_dump(),
        "host": host(settings, engine.name),
        "versions": engine.versions(),
    }


def _answer(capacity: Capacity, slo: Slo, details: dict[str, LoadDetails]) -> dict[str, Any]:
    return {
        "outcome": capacity.outcome,
        "headline": headline(capacity, slo),
        "rate": capacity.rate and round(capacity.rate, 2),
        "low": round(capacity.low, 2),
        "high": round(capacity.high, 2) if math.isfinite(capacity.high) else None,
        "precision": _rounded(capacity.precision),
        "speed_spread": round(capacity.speed_spread, 4),
        "seconds": round(capacity.seconds, 1),
        "notes": list(capacity.notes),
        "alone": {
            "p50_ms": round(1000 * capacity.alone.median_seconds, 1),
            "late_share": round(capacity.alone.late_share, 4),
            "failed_share": round(capacity.alone.failed_share, 4),
        },
        "at_capacity": _at_capacity(capacity, slo, details),
        "limit": _limit(capacity, details),
    }


def _no_answer(holds: Sequence[Hold], error: LabError) -> dict[str, Any]:
    """Return the fields of an answer for a search that this error ended."""
    reason = str(error).partition("\n")[0]
    fields = ("rate", "low", "high", "precision", "alone", "at_capacity", "limit")
    return {
        "outcome": "interrupted" if isinstance(error, Interrupted) else "failed",
        "headline": f"no answer: the search ended after {len(holds)} holds: {reason}",
        **dict.fromkeys(fields),
        "speed_spread": 0.0,
        "seconds": float(sum(len(hold.seconds) for hold in holds)),
        "notes": [],
    }


def search_result(document: dict[str, Any]) -> Result:
    """Return the answer of a search as the result of a load: the one just below the capacity, or
    just above it if none passed.
    """
    rate_found, hold = document["rate"], document["at_capacity"] or document["limit"]
    stored = (document["limit"] or {}).get("bottleneck")
    found = Diagnosis.model_validate(stored) if stored else None
    limit = Limit.GENERATOR if document["outcome"] == "generator" else Limit.TARGET
    counts: dict[str, Any] = {}
    if hold:
        good, per_second = hold["answered"] - hold["failed"], hold["answered"] / hold["seconds"]
        counts = {
            **{name: hold[name] for name in ("p50_ms", "p95_ms", "p99_ms", "failed")},
            "requests": hold["answered"],
            "rps": round(per_second, 2),
            "failed_ratio": round(hold["failed"] / max(hold["answered"], 1), 4),
            "successes": good,
            "goodput": round((good - hold["late"]) / hold["seconds"], 2),
            "services_cpu": hold["services"],
            "cpu_ms_per_request": {
                name: round(1000 * cores / per_second, 3)
                for name, cores in hold["services"].items()
                if per_second
            },
            # Searches of earlier versions have none.
            "memory_peak_bytes": hold.get("memory_bytes"),
        }
    return Result(
        testid=hold["load"] if hold else "",
        profile=CAPACITY,
        scenario=document["scenario"],
        started=document["started"],
        seconds=document["seconds"],
        limited_by=limit_with(found, limit),
        verdict=document["headline"],
        capacity=CapacityResult(
            rate=rate_found or 0.0,
            low=document["low"],
            high=document["high"],
            confirmed=document["outcome"] == "confirmed",
        ),
        cpu_speed=document["cpu_speed"],
        target=TargetName(name=document["target"], url=document.get("url", "")),
        only=document.get("only"),
        bottleneck=found,
        unseen_signals=list(found.unseen) if found else [],
        **counts,
    )


def headline(capacity: Capacity, slo: Slo) -> str:
    """Return the answer in one line."""
    if capacity.rate is None:
        return f"no rate meets this SLO: {_too_slow_text(capacity.alone, slo)}"
    if capacity.outcome == "generator":
        return f"at least {rate(capacity.rate)}/s: the load generator is the limit"
    interval = f"{rate(capacity.low)} to {rate(capacity.high)}"
    answer = f"{rate(capacity.rate)}/s ({interval})"
    return f"{answer}, confirmed" if capacity.confirmed else f"{answer}, not confirmed"


def _too_slow_text(alone: Alone, slo: Slo) -> str:
    if alone.failed_share > slo.max_errors and alone.failed > alone.late:
        return f"{alone.failed_share:.0%} of single requests failed"
    if alone.median_seconds > slo.p95_seconds:
        return f"one request alone takes {milliseconds(1000 * alone.median_seconds)} ms"
    limit = f"{1000 * slo.p95_seconds:,.0f} ms"
    return f"{alone.late_share:.0%} of single requests took longer than {limit}"


def _at_capacity(
    capacity: Capacity, slo: Slo, details: dict[str, LoadDetails]
) -> dict[str, Any] | None:
    """Return the hold just below the capacity; without a confirmation, the highest that passed."""
    passed = [hold for hold in capacity.holds if hold.passed]
    hold = capacity.below or max(passed, key=lambda one: one.rate, default=None)
    if hold is None:
        return None
    found = details[hold.load]
    used = None if found.p95_ms is None else found.p95_ms / 1000 / slo.p95_seconds
    return {**_hold_document(hold, found), "slo_used": _rounded(used)}


def _limit(capacity: Capacity, details: dict[str, LoadDetails]) -> dict[str, Any] | None:
    """Return the hold just above the capacity; without a confirmation, the lowest that failed."""
    failed = [hold for hold in capacity.holds if not hold.passed and not hold.is_void]
    hold = capacity.above or min(failed, key=lambda one: one.rate, default=None)
    return None if hold is None else _hold_document(hold, details[hold.load])


def _hold_document(hold: Hold, found: LoadDetails) -> dict[str, Any]:
    counts = [
        sum(getattr(second, name) for second in hold.seconds)
        for name in ("answered", "late", "failed")
    ]
    return {
        "load": hold.load,
        "rate": round(hold.rate, 2),
        "seconds": len(hold.seconds),
        "passed": hold.passed,
        "reason": hold.judgement.reason,
        "disturbed": hold.disturbed,
        "speed": hold.speed and round(hold.speed, 2),
        **dict(zip(("answered", "late", "failed"), map(round, counts), strict=True)),
        **_details_document(found),
        "timeline": [_second(second) for second in hold.seconds],
    }


def _details_document(found: LoadDetails) -> dict[str, Any]:
    bottleneck = found.bottleneck and found.bottleneck.model_dump(mode="json")
    operations = [each.model_dump(mode="json") for each in found.operations]
    plain = asdict(replace(found, bottleneck=None, operations=[]))
    return {**plain, "bottleneck": bottleneck, "operations": operations}


def _second(second: Second) -> dict[str, float | None]:
    mean = 1000 * second.response_seconds / second.answered if second.answered else None
    return {
        "answered": round(second.answered, 1),
        "late": round(second.late, 1),
        "failed": round(second.failed, 1),
        "mean_ms": None if mean is None else round(mean, 1),
        "in_flight": round(second.in_flight, 1),
    }


def _store(
    folder: Path,
    document: dict[str, Any],
    holds: Sequence[Hold],
    details: dict[str, LoadDetails],
) -> dict[str, Any]:
    rows = [_hold_document(hold, details[hold.load]) for hold in holds]
    speeds = [row["cpu_speed"] for row in rows if row["cpu_speed"]]
    document = {
        **document,
        "cpu_speed": round(fmean(speeds), 2) if speeds else None,
        "holds": rows,
        "files": {"folder": relative(folder), "result": relative(folder / "result.json")},
    }
    if rows and document["outcome"] not in ("interrupted", "failed"):
        # Altair takes half a second to import, which would delay every other command.
        from load_lab.capacity.chart import draw

        document["files"]["picture"] = relative(draw(document, folder / "capacity"))
    write_json(folder / "result.json", document)
    return document


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
