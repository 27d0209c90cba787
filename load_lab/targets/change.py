"""What can be changed of a target, to prove what limited it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from load_lab.targets.file import Texts

# The value of an option that is a number: twice as many.
DOUBLED = "x2"


@dataclass(frozen=True)
class Change:
    """A change: options, or statements for Postgres and those that undo them, a busy loop on each
    of the target's CPUs, or another route of the load. `ends`: what it ends besides, which may be
    the cause, and what to do then.
    """

    what: str = "unchanged"
    options: Mapping[str, str] = field(default_factory=dict)
    statements: tuple[str, ...] = ()
    undo: tuple[str, ...] = ()
    busy_loops: bool = False
    route: str | None = None
    ends: tuple[str, str] | None = None

    def same_as(self, other: "Change") -> bool:
        return replace(self, what=other.what) == other


def changed_options(now: Mapping[str, str | int], entry: Texts) -> Change:
    """Return the change of options to the values of an entry: `x2` doubles a number."""
    new = {
        name: str(2 * int(now[name]) if value == DOUBLED else value)
        for name, value in entry.items()
    }
    return Change(", ".join(f"{name}: {now[name]} → {value}" for name, value in new.items()), new)
