"""The verdict on a run: whether it held, where it broke, and what limited it. Pure."""

from dataclasses import dataclass, replace
from statistics import fmean

from load_lab.machine.control_groups import MUCH_THROTTLED
from load_lab.machine.cpu_use import CpuUse, busy_between
from load_lab.machine.observation import LITTLE_WAIT
from load_lab.metrics.plan import Plan
from load_lab.metrics.windows import ERRORS, STEP_SECONDS, WINDOW_SECONDS, Bounds, Window
from load_lab.results.breakpoint import BREAK_WINDOWS, BreakPoint, find_break
from load_lab.results.failures import failures_text
from load_lab.results.limit import Limit
from load_lab.results.result import Outcome, Result, WebSockets

# CPU utilization of the generator. From the first value on its CPUs are full, and it measures its
# own queue. From the second value on it also queues, so it is the limit if the target is less busy.
GENERATOR_FULL, _NEARLY_FULL = 0.9, 0.75
# Of the target's CPUs, by other programs.
_MOSTLY_TAKEN = 0.5


@dataclass(frozen=True)
class Verdict:
    """The fields of a `Result` that follow from its metrics; `verdict` is the readable sentence."""

    outcome: Outcome
    limited_by: Limit
    verdict: str
    break_point: BreakPoint | None = None


def verdict_of(
    result: Result, plan: Plan | None, bounds: Bounds, *, thresholds_failed: bool = False
) -> Verdict:
    """Return the verdict on a result's metrics; `plan` is the plan of an open-model profile."""
    if result.page_change:
        text = f"failed: {result.page_change.text}; until the end: {_counts(result)}"
        return Verdict("failed", Limit.NONE, text)
    if result.recorded and result.recorded.faults:
        return _unrecorded_verdict(result)
    if plan is None:
        return _closed_verdict(result, thresholds_failed)
    # Windows end before what Prometheus lacks: a k6 short of CPU pushes late, after the break.
    point = find_break(result.windows)
    if point:
        return _break_verdict(result, plan, point)
    if result.recorded and not result.recorded.readable:
        return _unrecorded_verdict(result)
    verdict = _held_verdict(result, plan, bounds)
    return _with_messages(verdict, result.websockets) if result.websockets else verdict


def _with_messages(verdict: Verdict, sockets: WebSockets) -> Verdict:
    """Add the WebSocket messages to the verdict: each must reach each of its watchers exactly
    once.
    """
    messages = (
        f"of {sockets.expected} messages due {sockets.lost} lost, {sockets.doubled} came twice; "
        f"{sockets.closed} sockets closed"
    )
    text = f"{verdict.verdict}; {messages}"
    if sockets.delivered:
        return replace(verdict, verdict=text)
    return replace(verdict, outcome="failed", verdict=f"failed by its messages, {text}")


def _closed_verdict(result: Result, thresholds_failed: bool) -> Verdict:
    # Only the smoke test has thresholds; other closed-model loads are measurements.
    success: Outcome = "passed" if result.profile == "smoke" else "measured"
    outcome = "failed" if thresholds_failed or not result.requests else success
    text = f"{outcome}: {_counts(result)}{_failures(result)}"
    limited = limit_of_cpu(_cpu_of_load(result))
    if outcome == "measured" and limited in _OUTSIDE:
        return Verdict(outcome, limited, f"{text}; {_limited_text(limited)}")
    return Verdict(outcome, Limit.NONE, text)


def interrupted_verdict(result: Result) -> Verdict:
    """Return the verdict on a run that a signal ended: its counts, and no judgement."""
    text = f"interrupted after {result.seconds:.0f} s, so not judged: {_counts(result)}"
    return Verdict("interrupted", Limit.NONE, text)


def _unrecorded_verdict(result: Result) -> Verdict:
    """Return a verdict from k6's summary, which has no time series to find a break point in. A k6
    that lacks CPU time also stops pushing.
    """
    completeness = result.recorded.text if result.recorded else ""
    text = (
        f"not recorded, so not judged: {completeness}. No break point can be found from it. By "
        f"k6's own count: {_counts(result)}"
    )
    limited = limit_of_cpu(_cpu_of_load(result))
    if limited in _OUTSIDE:
        return Verdict("unrecorded", limited, f"{text}; {_limited_text(limited)}")
    return Verdict("unrecorded", Limit.NONE, text)


def _counts(result: Result) -> str:
    late = "" if result.p95_ms is None else f", p95 {result.p95_ms:.0f} ms"
    refused = f", {result.refused} refused" if result.refused else ""
    return f"{result.requests} requests, {result.failed} failed{refused}{late}"


def _held_verdict(result: Result, plan: Plan, bounds: Bounds) -> Verdict:
    # Without a break, the lab stops a ramp only because of its generator.
    stopped = result.stopped_after is not None
    use = _cpu_of_load(result)
    limited = _limited_by_generators(result) or _limited_by(use, result.dropped_iterations)
    if stopped and limited != Limit.OTHERS:
        limited = Limit.GENERATOR
    text = (
        f"held: up to {plan.top_rate:.1f} {plan.unit}/s no limit was exceeded "
        f"(p95 {bounds.p95_ms:.0f} ms, errors {bounds.error_ratio:.0%}, "
        f"achieved {bounds.achieved_ratio:.0%}){_violations(result.windows)}"
    )
    if stopped:
        text += f"; {_limited_text(limited)}"
    return Verdict("held", Limit.NONE if limited == Limit.TARGET else limited, text)


def _violations(windows: list[Window]) -> str:
    """Describe the windows over a limit, too few in a row for a break; a load may end too soon."""
    broken = [window for window in windows if window.broken]
    if not broken:
        return ""
    last = broken[-1]
    return (
        f" in {BREAK_WINDOWS} windows in a row; {len(broken)} of {len(windows)} windows exceeded "
        f"one, the last at {last.end:.0f} s of {windows[-1].end:.0f} s: {' and '.join(last.broken)}"
    )


def _break_verdict(result: Result, plan: Plan, point: BreakPoint) -> Verdict:
    use = _cpu_at_break(result, point)
    limited = _limited_by_generators(result) or _limited_by(use, point.dropped)
    if limited == Limit.OTHERS and not _generator_queued(use) and _waits_for_no_cpu(result, point):
        limited = Limit.TARGET
    if limited == Limit.TARGET and not _is_all_seen(result):
        limited = Limit.UNSEEN
    goodput = f"goodput {point.goodput:.1f}/s" if point.goodput else "no response in time"
    text = (
        f"broke at {point.rate:.1f} {plan.unit}/s ({goodput}, "
        f"offered {point.offered:.1f}/s): {' and '.join(point.reasons)}"
        f"{_failures(result) if is_by_errors(point) else ''}; {_limited_text(limited)}"
    )
    if result.recorded and not result.recorded.readable:
        text += f"; afterwards: {result.recorded.text}"
    if use is not None:
        busy_target, busy_generator = round(use.target, 3), round(use.load, 3)
        point = replace(point, target_cpu=busy_target, generator_cpu=busy_generator)
    return Verdict("broke", limited, text, point)


def is_by_errors(point: BreakPoint) -> bool:
    """Return whether errors exceeded a limit."""
    return any(reason.startswith(ERRORS) for reason in point.reasons)


def _failures(result: Result) -> str:
    text = failures_text(result.failures, result.requests)
    return f"; {text}" if text else ""


def with_limit(result: Result, limit: Limit) -> Result:
    """Return the result of a run that broke with what its diagnosis says of its limit."""
    before, after = _limited_text(result.limited_by), _limited_text(limit)
    start, found, end = result.verdict.rpartition(before) if before else (result.verdict, "", "")
    text = start + after + end if found or not before else result.verdict
    return result.model_copy(update={"limited_by": limit, "verdict": text})


def _waits_for_no_cpu(result: Result, point: BreakPoint) -> bool:
    """Return whether the server waited little for a CPU: others took only what it left."""
    end = (result.prometheus.start if result.prometheus else 0.0) + point.seconds_into_test
    waited = [one.waited for one in result.signals if end - WINDOW_SECONDS < one.at <= end]
    return bool(waited) and fmean(waited) <= LITTLE_WAIT


def _limited_by_generators(result: Result) -> Limit | None:
    """Return GENERATOR if a generator on a cluster used up its limit: k6 measures its own
    queue then.
    """
    full = any(
        one.cpu and one.cpu_limit and one.cpu >= GENERATOR_FULL * one.cpu_limit
        for one in result.generators
    )
    return Limit.GENERATOR if full else None


def _is_all_seen(result: Result) -> bool:
    """Return whether the CPU use of the target and of every pod that sent the load is known."""
    pods = [one for one in result.generators if one.cpu_limit]
    return (result.target is None or result.target.observed) and all(
        one.cpu is not None for one in pods
    )


def _cpu_at_break(result: Result, point: BreakPoint) -> CpuUse | None:
    """Return the CPU use over all deciding windows, not only the first."""
    started = result.prometheus.start if result.prometheus else 0.0
    end = started + point.seconds_into_test
    last_end = end + (BREAK_WINDOWS - 1) * STEP_SECONDS
    return busy_between(result.cpu, end - WINDOW_SECONDS, last_end)


def _cpu_of_load(result: Result) -> CpuUse | None:
    if result.prometheus is None:
        return None
    return busy_between(result.cpu, result.prometheus.start, result.prometheus.end)


# Who else may have taken the CPUs.
_OUTSIDE = (Limit.GENERATOR, Limit.OTHERS)


def _limited_text(limit: Limit) -> str:
    is_outside = limit in (*_OUTSIDE, Limit.ERRORS)
    meaning = ", so this is no limit of the target" if is_outside else ""
    return f"limited by {limit.text}{meaning}"


def _limited_by(use: CpuUse | None, dropped: float) -> Limit:
    limited = limit_of_cpu(use)
    if limited != Limit.NONE:
        return limited
    return Limit.VIRTUAL_USERS if dropped > 0 else Limit.TARGET


def limit_of_cpu(use: CpuUse | None) -> Limit:
    """Return who took the CPUs; NONE if that was not the limit, or they were the target's own."""
    if use is None:
        return Limit.NONE
    if use.throttled > MUCH_THROTTLED:
        return Limit.GENERATOR
    if _generator_queued(use):
        # Whoever used most of the generator's CPUs: a target without CPUs of its own may, too.
        users: dict[Limit, float] = {
            Limit.GENERATOR: use.lab,
            Limit.OTHERS: use.others,
            Limit.TARGET: use.sharing,
        }
        return max(users, key=lambda name: users[name])
    if use.target >= GENERATOR_FULL and use.taken > _MOSTLY_TAKEN:
        return Limit.OTHERS
    return Limit.NONE


def _generator_queued(use: CpuUse | None) -> bool:
    if use is None:
        return False
    return use.load >= GENERATOR_FULL or (use.load >= _NEARLY_FULL and use.load > use.target)
