"""What a run says: did it hold, where did it break, and what limited it."""

from dataclasses import dataclass, replace
from typing import Literal

from lab.analysis.breakpoint import (
    IN_A_ROW,
    STEP_SECONDS,
    WINDOW_SECONDS,
    Bounds,
    BreakPoint,
    Window,
    find_break,
)
from lab.analysis.collect import Collected
from lab.analysis.figures import websockets
from lab.host.sampler import CpuUse, busy_between
from lab.load.k6 import Run
from lab.load.plan import Plan

Outcome = Literal["passed", "failed", "broke", "held", "measured", "unrecorded"]
LimitedBy = Literal["target", "generator_cpu", "vu_cap", "none"]

# Above the first share the generator's CPUs were full: what it measured is its own queue. It queues
# from the second on, so that a target which had less to do is not to blame.
_FULL, _NEARLY_FULL = 0.9, 0.75


@dataclass(frozen=True)
class Verdict:
    """`text` is the readable sentence; the rest is what it was made from."""

    outcome: Outcome
    limited_by: LimitedBy
    text: str
    break_point: BreakPoint | None = None
    cpu_at_break: CpuUse | None = None


def judge(run: Run, collected: Collected, bounds: Bounds) -> Verdict:
    """The verdict of one run."""
    if collected.plan is None:
        return _judge_closed(run, collected)
    if not collected.recorded.readable:
        return _unrecorded(run, collected)
    found = find_break(collected.windows)
    if found:
        return _broke(run, collected, collected.plan, found)
    held = _held(run, collected, collected.plan, bounds)
    sockets = websockets(collected)
    return _with_messages(held, sockets) if sockets else held


def _with_messages(held: Verdict, sockets: dict[str, float | None]) -> Verdict:
    """Bookings that were answered are not enough: each has to reach each of its watchers, once."""
    fine = sockets["expected"] and not (sockets["lost"] or sockets["doubled"] or sockets["closed"])
    messages = (
        "of {expected} messages due {lost} lost, {doubled} came twice; {closed} sockets closed"
    )
    text = f"{held.text}; {messages.format(**sockets)}"
    if fine:
        return replace(held, text=text)
    return replace(held, outcome="failed", text=f"failed by its messages, {text}")


def _judge_closed(run: Run, collected: Collected) -> Verdict:
    count = collected.value("http_reqs", "count")
    # Only the smoke test has thresholds; a closed load is no test.
    fine: Outcome = "passed" if run.load.profile == "smoke" else "measured"
    outcome = "failed" if run.thresholds_failed or not count else fine
    use = busy_between(run.cpu, collected.load_started, run.ended)
    text = f"{outcome}: {_figures_of_k6(collected)}"
    if outcome == "measured" and use is not None and _generator_queued(use):
        text += f"; limited by {_LIMITS['generator_cpu']}"
        return Verdict(outcome, "generator_cpu", text)
    return Verdict(outcome, "none", text)


def _unrecorded(run: Run, collected: Collected) -> Verdict:
    """k6's own summary has no course in time, in which a break point could be sought. A k6 without
    CPU time does not push either.
    """
    text = (
        f"not recorded, so not judged: {collected.recorded.text}. No break point can be found from "
        f"it. By k6's own count: {_figures_of_k6(collected)}"
    )
    use = busy_between(run.cpu, collected.load_started, run.ended)
    if use is not None and _generator_queued(use):
        return Verdict("unrecorded", "generator_cpu", f"{text}; limited by {_GENERATOR}")
    return Verdict("unrecorded", "none", text)


def _figures_of_k6(collected: Collected) -> str:
    count = int(collected.value("http_reqs", "count"))
    failed = int(collected.value("http_req_failed", "passes"))
    p95 = collected.milliseconds("http_req_duration", "p(95)")
    late = "" if p95 is None else f", p95 {p95:.0f} ms"
    return f"{count} requests, {failed} failed{late}"


def _held(run: Run, collected: Collected, plan: Plan, bounds: Bounds) -> Verdict:
    use = busy_between(run.cpu, collected.load_started, run.ended)
    limited = _limited_by(use, collected.value("dropped_iterations", "count"))
    if limited == "target":
        limited = "none"
    text = (
        f"held: up to {plan.top_rate:.1f} {plan.unit}/s no bound gave way "
        f"(p95 {bounds.p95_ms:.0f} ms, errors {bounds.error_ratio:.0%}, "
        f"achieved {bounds.achieved_ratio:.0%}){_gave_way(collected.windows)}"
    )
    return Verdict("held", limited, text, cpu_at_break=use)


def _gave_way(found: list[Window]) -> str:
    """The windows that broke a bound, too few in a row for a break; a load may end too soon."""
    broken = [window for window in found if window.broken]
    if not broken:
        return ""
    last = broken[-1]
    return (
        f" for {IN_A_ROW} windows in a row; {len(broken)} of {len(found)} windows broke one, the "
        f"last at {last.end:.0f} s of {found[-1].end:.0f} s: {' and '.join(last.broken)}"
    )


def _broke(run: Run, collected: Collected, plan: Plan, found: BreakPoint) -> Verdict:
    # The windows that decided, not only the first of them.
    start = collected.load_started + found.window.end - WINDOW_SECONDS
    end = collected.load_started + found.window.end + (IN_A_ROW - 1) * STEP_SECONDS
    use = busy_between(run.cpu, start, end)
    limited = _limited_by(use, found.window.dropped)
    text = (
        f"broke at {found.rate:.1f} {plan.unit}/s (goodput {found.goodput:.1f}/s, "
        f"seen at {found.offered:.1f}/s): {' and '.join(found.reasons)}; "
        f"limited by {_LIMITS[limited]}"
    )
    return Verdict("broke", limited, text, found, use)


_GENERATOR = "the load generator's CPU, so this is no limit of the target"
_LIMITS: dict[LimitedBy, str] = {
    "target": "the target",
    "generator_cpu": _GENERATOR,
    "vu_cap": "the number of virtual users, all held by a slow target",
    "none": "nothing",
}


def _limited_by(use: CpuUse | None, dropped: float) -> LimitedBy:
    if use is not None and _generator_queued(use):
        return "generator_cpu"
    return "vu_cap" if dropped > 0 else "target"


def _generator_queued(use: CpuUse) -> bool:
    return use.load >= _FULL or (use.load >= _NEARLY_FULL and use.load > use.target)
