"""What proves a cause: a change of the target, its effect on the throughput, and a control."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches

from load_lab.diagnosis import causes, logged
from load_lab.errors import UsageError
from load_lab.results.bottleneck import Diagnosis
from load_lab.targets.change import Change
from load_lab.targets.file import Variation, target_path
from load_lab.targets.subject import Subject, Variant

# Workers that compute have a queue of about so many for each CPU, from which a busy loop takes one
# part. More than this share of the throughput is left.
_MOST_LEFT = 0.85
_BUSY_LOOPS = Change("a busy loop on each of the target's CPUs", busy_loops=True)
_COMPUTES = (causes.BACKEND_CPU.name, causes.POSTGRES_CPU.name)
# Twice as much of what limits gives twice the throughput; of these, less. Quick code does at least
# so much more, on the hotel API.
_DOUBLE = 2.0
_FACTORS = {causes.GIL.name: 1.7, causes.MAX_CONNECTIONS.name: 1.5, **dict.fromkeys(_COMPUTES, 1.5)}
# Where no other candidate can be changed: what the change leaves out. A busy loop would take the
# CPU that one process more needs.
_CONTROLS = {
    **dict.fromkeys(_COMPUTES, (causes.SLOTS.name, causes.GIL.name, causes.WAL.name)),
    causes.GIL.name: (causes.SLOTS.name, causes.WAL.name),
}
# No change of the target gives more of them.
_ELSEWHERE = {
    causes.GENERATOR.name,
    causes.VIRTUAL_USERS.name,
    causes.OTHERS.name,
    causes.STEAL.name,
    causes.ONE_REQUEST.name,
}
_LOGGED = (*logged.STATES.values(), *logged.CAUSES.values(), *logged.SYMPTOMS.values())
_NAMES = {*causes.NAMES, *(cause.name for cause in _LOGGED)}


@dataclass
class Arm:
    """A change, and by which factor it must move the throughput if its cause is the limit; `rates`
    are the successful responses per second that it gave.
    """

    cause: str = ""
    change: Change = field(default_factory=Change)
    factor: float = 1.0
    rates: list[float] = field(default_factory=list)

    @property
    def variant(self) -> Variant:
        return Variant(self.change.what, Variation(options=dict(self.change.options)))


def arms_of(subject: Subject, cause: str, found: Diagnosis, route: str | None) -> list[Arm]:
    """Return the unchanged target, the change of the cause that was found, and the control.

    Raises:
        UsageError: nothing can be changed for it, or as a control.
    """
    shares = {one.name: one.share for one in found.candidates}
    changes, busy = subject.changes(route), dict.fromkeys(_COMPUTES, _BUSY_LOOPS)
    _require_causes(changes, subject)
    first = (busy | changes).get(cause)
    if first is None:
        how = "" if cause in _ELSEWHERE else subject.how_to_change(cause)
        raise UsageError(
            f"The target can't be changed to verify: {cause}. {how}Next: {found.remedy}."
        )
    # Not the quick code: it needs fewer round trips, too.
    others = changes | busy
    rest = (name for name in changes if name not in busy)
    names = (*shares, *_CONTROLS.get(cause, (causes.BACKEND_CPU.name,)), *rest)
    control = next(
        (n for n in names if n != cause and n in others and not others[n].same_as(first)), None
    )
    if control is None:
        raise UsageError(
            f"Nothing can be changed that would not help, so it can't be verified: {cause}. "
            f"{subject.how_to_change(causes.SLOTS.name)}Next: {found.remedy}."
        )
    return [Arm(), _arm(cause, first, shares), _arm(control, others[control], shares)]


def _require_causes(changes: Iterable[str], subject: Subject) -> None:
    """Check the names of [prove]."""
    for name in changes:
        if name not in _NAMES and not name.startswith(causes.BEGINNINGS):
            near = get_close_matches(name, _NAMES, 1) or [causes.SLOTS.name]
            raise UsageError(
                f'"{name}" in [prove] of {target_path(subject.name)} is no cause. Write its name '
                f'as `lab explain` does, such as "{near[0]}".'
            )


def _arm(cause: str, change: Change, shares: Mapping[str, float]) -> Arm:
    """Return the arm with its prediction, which may depend on the part of a request's time that the
    cause has.
    """
    share = shares.get(cause, 1.0)
    factors = {
        **_FACTORS,
        # Of half the delay; and of no flush.
        causes.NETWORK.name: 1 / (1 - share / 2),
        causes.WAL.name: 1 / max(1 - share, 0.2),
    }
    return Arm(cause, change, _MOST_LEFT if change.busy_loops else factors.get(cause, _DOUBLE))
