"""Name what limits a target, with the evidence; or say that it is not clear.

The order: what makes the run void; errors, by who refused; then the place where requests spend most
of their time in the server, the innermost first: full workers and a full accept queue are behind
every other cause, so they show that there is one, and not which.
"""

from typing import Any

from load_lab.diagnosis import causes
from load_lab.diagnosis.causes import Cause
from load_lab.diagnosis.evidence import headline, workers
from load_lab.diagnosis.facts import Facts
from load_lab.diagnosis.logged import SYMPTOMS, logged_causes, logged_texts
from load_lab.diagnosis.overriding import is_shed, overriding_causes
from load_lab.diagnosis.period import FULL_SLOTS, Period
from load_lab.diagnosis.ranking import are_processes_full, ranking
from load_lab.diagnosis.split import Split, split_of
from load_lab.results.bottleneck import Candidate, Diagnosis
from load_lab.results.limit import Limit

_MIN_LOOKS = 20
# By this factor the first cause leads the second; with less, both are named.
_CLOSE = 1.3
# Of a request's demand, what remains in any case when it wakes no CPU: a short request needs little
# of what was in the caches.
_LEAST_AWAKE = 2 / 3


def diagnose(facts: Facts) -> Diagnosis:
    """Return the diagnosis of a run that exceeded a limit."""
    split = split_of(facts.saturated, facts.slots)
    times = split.milliseconds(facts.saturated.answered)
    seen = Diagnosis(
        split_ms={place: round(ms, 1) for place, ms in times.items()},
        predicted_rate=predicted_rate(facts),
        unseen=facts.unseen,
    )
    certain = next(overriding_causes(facts), None)
    if certain is None:
        return seen.model_copy(update=_by_split(facts, split))
    return seen.model_copy(update=_of_cause(*certain))


def _of_cause(cause: Cause, evidence: str) -> dict[str, Any]:
    return {
        "cause": cause.name,
        "certainty": "likely",
        "headline": cause.name,
        "evidence": (evidence,),
        "remedy": cause.remedy,
        "candidates": (Candidate(name=cause.name, share=1.0, evidence=evidence),),
    }


def limit_with(found: Diagnosis | None, limit: Limit) -> Limit:
    """Return what limited a run whose windows tell `limit`. Whether requests waited for a CPU that
    other programs used, only the diagnosis knows.
    """
    if found is not None and found.is_no_limit:
        return Limit.ERRORS
    is_taken = found is not None and found.cause == causes.OTHERS.name
    return Limit.OTHERS if is_taken and limit != Limit.GENERATOR else limit


def _by_split(facts: Facts, split: Split) -> dict[str, Any]:
    """Return the fields of the diagnosis by where requests spend their time."""
    if facts.saturated.looks < _MIN_LOOKS:
        looks = facts.saturated.looks
        return {
            "headline": f"not seen: {looks} samples over the limit, at least {_MIN_LOOKS} needed"
        }
    if not _is_seen(facts):
        return {"headline": causes.UNSEEN.name, "remedy": causes.UNSEEN.remedy}
    if _fails_without_a_queue(facts, split):
        return _of_errors(facts)
    found = ranking(facts, split)
    if not found:
        return {"headline": "not clear: no part of the target was full", "certainty": "unclear"}
    if found[0].name == causes.UNSEEN.name:
        return {
            "headline": causes.UNSEEN.name,
            "evidence": (*workers(facts, split), found[0].evidence),
            "remedy": causes.UNSEEN.remedy,
            "candidates": tuple(found),
        }
    first, *others = found
    close = [one for one in others[:1] if first.share < _CLOSE * one.share]
    if not close and _may_lack_users(facts):
        dropped = f"{facts.saturated.dropped:.1f} dropped iterations per second"
        close = [Candidate(name=causes.VIRTUAL_USERS.name, share=first.share, evidence=dropped)]
    # Its text has the threads, and the workers of a server that is not known are a guess.
    busy = () if first.name == causes.EVENT_LOOP.name else workers(facts, split)
    evidence = [*busy, first.evidence, *(one.evidence for one in close)]
    return {
        "cause": first.name,
        "certainty": "unclear" if close else "likely",
        "headline": f"not clear: {first.name}, or {close[0].name}"
        if close
        else headline(first.name, split),
        "evidence": tuple(evidence),
        "remedy": causes.remedy_of(first.name),
        "candidates": tuple(found),
    }


def _of_errors(facts: Facts) -> dict[str, Any]:
    """Return the fields of the diagnosis of errors that no part of the target explains."""
    began, status, logged = facts.began, facts.unloaded, logged_texts(facts)
    if symptom := next(logged_causes(facts, SYMPTOMS), None):
        return _of_cause(*symptom)
    if began:
        what = (
            f"errors began at one moment, {began.after:.0f} s into the load, at {began.operations} "
            f"of {began.of} operations, while no part was full"
        )
    elif status:
        what = f"most errors are {status}, while no part was full"
    else:
        return {
            "headline": "not clear: requests failed, and no part of the target was full",
            "certainty": "unclear",
            "evidence": logged,
            "remedy": facts.advice,
        }
    headline = f"no limit of the target: {what}"
    fields = {"headline": headline, "certainty": "unclear", "remedy": facts.advice}
    return {**fields, "evidence": logged, "is_no_limit": True}


def _fails_without_a_queue(facts: Facts, split: Split) -> bool:
    """Return whether requests fail, nobody refused them, and nothing is full: by a bug, a token
    that expired, or a limit that is not seen. Shedding has a cause behind it.
    """
    is_full = (
        facts.saturated.has_full_cpu
        or are_processes_full(facts)
        or split.waiting >= 1
        or (facts.slots is not None and split.busy >= FULL_SLOTS * facts.slots)
    )
    return facts.by_errors and not is_shed(facts) and not is_full


def _may_lack_users(facts: Facts) -> bool:
    """Return whether the load had too few virtual users for a server whose limits are not known."""
    seen = facts.saturated
    return facts.slots is None and seen.dropped > 0 and not seen.has_full_cpu


def _is_seen(facts: Facts) -> bool:
    """Return whether it is known where requests are, or who uses full CPUs."""
    seen = facts.saturated
    states = sum(count for state, count in seen.threads.items() if state != "unknown")
    return seen.in_flight is not None or states > 0 or seen.has_full_cpu


def predicted_rate(facts: Facts) -> float | None:
    """Return the rate at which the busiest resource is full, by the utilization law: demand is busy
    share × servers ÷ throughput, and does not change with the load, but for the CPU time that
    waking adds while CPUs sleep between requests.
    """
    calm = facts.half
    if calm is None or not calm.answered:
        return None
    resources = [
        (facts.cpus, facts.cpus * calm.cpu.target),
        (facts.processes, calm.server_cpu),
        (facts.slots, calm.in_flight),
    ]
    rates = [
        servers / _demand_awake(facts, calm, busy / calm.answered)
        for servers, busy in resources
        if servers and busy
    ]
    return round(min(rates), 2) if rates else None


def _demand_awake(facts: Facts, calm: Period, demand: float) -> float:
    """Return the demand of a request that finds its CPU awake. k6 spaces requests evenly, so
    each of them wakes a CPU, unless these are too busy to sleep for long.
    """
    asleep = min(1.0, 2 * (1 - calm.cpu.target))
    return max(demand - asleep * facts.wake, _LEAST_AWAKE * demand)
