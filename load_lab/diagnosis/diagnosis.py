"""Name what limits a target, with the evidence; or say that it is not clear.

Full workers and a full accept queue are behind every other cause, so they show that there is one,
and not which: it is where requests spend most of their time.
"""

from typing import Any

from load_lab.diagnosis import causes, conditions
from load_lab.diagnosis.causes import Cause
from load_lab.diagnosis.evidence import headline, workers
from load_lab.diagnosis.facts import Facts
from load_lab.diagnosis.logged import SYMPTOMS, logged_causes, logged_texts
from load_lab.diagnosis.prediction import predicted_rate
from load_lab.diagnosis.rules import rule_at, rule_of_run
from load_lab.results.bottleneck import Candidate, Diagnosis
from load_lab.results.limit import Limit

_MIN_LOOKS = 20
# By this factor the first cause leads the second; with less, both are named.
_CLOSE = 1.3
# Of a request's time: less is not worth a line.
_LEAST_SHARE = 0.02


def diagnose(facts: Facts) -> Diagnosis:
    """Return the diagnosis of a run that exceeded a limit."""
    times = facts.split.milliseconds(facts.saturated.answered)
    rule = rule_of_run(facts)
    found = _of_run(rule.cause_of(facts), rule.text(facts, "process")) if rule else _by_place(facts)
    prediction = predicted_rate(facts, found.get("cause"))
    return Diagnosis(
        split_ms={place: round(ms, 1) for place, ms in times.items()},
        predicted_rate=prediction.rate,
        not_predicted=prediction.why,
        unseen=facts.unseen,
        **found,
    )


def limit_with(found: Diagnosis | None, limit: Limit) -> Limit:
    """Return what limited a run whose windows tell `limit`. Whether requests waited for a CPU that
    other programs used, only the diagnosis knows.
    """
    if found is not None and found.is_no_limit:
        return Limit.ERRORS
    is_taken = found is not None and found.cause == causes.OTHERS.name
    return Limit.OTHERS if is_taken and limit != Limit.GENERATOR else limit


def ranking(facts: Facts) -> list[Candidate]:
    """Return the causes by their share of the time of a request, the largest first, each with the
    evidence of its largest place.
    """
    shares, texts = dict[str, float](), dict[str, str]()
    for place in sorted(facts.split.places, key=facts.split.share, reverse=True):
        rule = rule_at(facts, place)
        name = rule.cause_of(facts).name
        shares[name] = shares.get(name, 0.0) + facts.split.share(place)
        texts.setdefault(name, rule.text(facts, place))
    return [
        Candidate(name=name, share=round(share, 3), evidence=texts[name])
        for name, share in sorted(shares.items(), key=lambda item: -item[1])
        if share > _LEAST_SHARE
    ]


def _of_run(cause: Cause, evidence: str) -> dict[str, Any]:
    return {
        "cause": cause.name,
        "certainty": "likely",
        "headline": cause.name,
        "evidence": (evidence,),
        "remedy": cause.remedy,
        "candidates": (Candidate(name=cause.name, share=1.0, evidence=evidence),),
    }


def _by_place(facts: Facts) -> dict[str, Any]:
    """Return the fields of the diagnosis by where requests spend their time."""
    if facts.saturated.looks < _MIN_LOOKS:
        looks = facts.saturated.looks
        return {
            "headline": f"not seen: {looks} samples over the limit, at least {_MIN_LOOKS} needed"
        }
    if not _is_seen(facts):
        return {"headline": causes.UNSEEN.name, "remedy": causes.UNSEEN.remedy}
    if conditions.fails_without_a_queue(facts):
        return _of_errors(facts)
    found = ranking(facts)
    if not found:
        return {"headline": "not clear: no part of the target was full", "certainty": "unclear"}
    if found[0].name == causes.UNSEEN.name:
        return {
            "headline": causes.UNSEEN.name,
            "evidence": (*workers(facts), found[0].evidence),
            "remedy": causes.UNSEEN.remedy,
            "candidates": tuple(found),
        }
    return _named(facts, found)


def _named(facts: Facts, found: list[Candidate]) -> dict[str, Any]:
    first, *others = found
    close = [one for one in others[:1] if first.share < _CLOSE * one.share]
    if not close and conditions.may_lack_users(facts):
        dropped = f"{facts.saturated.dropped:.1f} dropped iterations per second"
        close = [Candidate(name=causes.VIRTUAL_USERS.name, share=first.share, evidence=dropped)]
    # Its text has the threads, and the workers of a server that is not known are a guess.
    busy = () if first.name == causes.EVENT_LOOP.name else workers(facts)
    return {
        "cause": first.name,
        "certainty": "unclear" if close else "likely",
        "headline": f"not clear: {first.name}, or {close[0].name}"
        if close
        else headline(first.name, facts),
        "evidence": (*busy, first.evidence, *(one.evidence for one in close)),
        "remedy": causes.remedy_of(first.name),
        "candidates": tuple(found),
    }


def _of_errors(facts: Facts) -> dict[str, Any]:
    """Return the fields of the diagnosis of errors that no part of the target explains."""
    began, status, logged = facts.began, facts.unloaded, logged_texts(facts)
    if symptom := next(logged_causes(facts, SYMPTOMS), None):
        return _of_run(*symptom)
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


def _is_seen(facts: Facts) -> bool:
    """Return whether it is known where requests are, or who uses full CPUs."""
    seen = facts.saturated
    states = sum(count for state, count in seen.threads.items() if state != "unknown")
    return seen.in_flight is not None or states > 0 or seen.has_full_cpu
