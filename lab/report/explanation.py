"""`lab explain`: what limited a stored run, and what is missing to say it."""

from typing import Any

from lab.analysis.bottleneck.reading import expected_capacity, known_limits
from lab.analysis.provenance import write_json
from lab.errors import UsageError
from lab.report.results import StoredRun, find_run
from lab.stack.engine import Engine
from lab.suites.proof.run import prove
from lab.suites.single_run import SingleRun, parse_single_run

# The first format with signals.
_SINCE = 13


def explain(name: str) -> dict[str, Any]:
    """Return the diagnosis of a run of `lab k6`; `why` says why there is none.

    Raises:
        UsageError: there is no such run, or it is no single run.
    """
    run = find_run(name)
    if run.kind != "run":
        raise UsageError(f"{name} is no run of `lab k6`. Those: lab list runs")
    document = run.document()
    single_run = _single(run, document)
    result, found = single_run.result, single_run.result.bottleneck
    expected = expected_capacity(result, single_run.settings) if result.outcome == "held" else None
    return {
        "testid": result.testid,
        "verdict": result.verdict,
        "broke_at": result.broke_at,
        "bottleneck": found.model_dump(mode="json") if found else None,
        "why": "" if found else _why_not(document, result.outcome),
        "expected_capacity": expected,
        "unseen": result.unseen_signals,
    }


def proof_of(engine: Engine, name: str) -> dict[str, Any]:
    """Prove the cause of a run by an intervention, and store the proof with it.

    Raises:
        UsageError: it has no cause, or one that can't be changed here.
    """
    run = find_run(name)
    single_run = _single(run, run.document())
    target = single_run.result.target
    if target is None or not known_limits(target.url, single_run.settings):
        raise UsageError(
            f"{name} loaded {target.name if target else 'another app'}: `lab` can change only the "
            "hotel API's stack. To verify the cause, give that part more, and measure again."
        )
    folder = run.path.parent / "proof"
    proof = prove(engine, single_run, folder)
    write_json(folder / "proof.json", proof)
    return proof


def _single(run: StoredRun, document: dict[str, Any]) -> SingleRun:
    try:
        return parse_single_run(document)
    except ValueError as error:
        raise run.damaged(str(error)) from None


def _why_not(document: dict[str, Any], outcome: str) -> str:
    if document["schema_version"] < _SINCE:
        return "An older lab measured it: nothing was seen of the target's parts. Measure it again."
    if outcome == "unrecorded":
        return "Prometheus lacks a part of the run, so it is not known when it broke."
    return "No limit was exceeded for long enough, so nothing limited it."
