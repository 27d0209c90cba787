"""What runs an arm of an old stack: as processes or as containers, by the engine that runs."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from lab.legacy.stacks import Arm, Stack

# Of an old stack, in the running stack's Postgres.
DATABASE = "legacy"


@dataclass(frozen=True)
class Running:
    """An arm that was started. `facts` grow while it is verified.

    `check` raises LabError when one of its processes has ended, with the end of its log.
    """

    base_url: str
    pids: dict[str, int]
    check: Callable[[], None]
    facts: dict[str, Any] = field(default_factory=dict)


class LegacyRunner(Protocol):
    """One way to run old stacks."""

    def make(self, stack: Stack) -> None:
        """Make what the stack runs in, unless it is there.

        Raises NotHere when this machine lacks what that needs.
        """

    def prepare(self, stack: Stack) -> None:
        """Fill the stack's database, unless that was done."""

    def running(self, stack: Stack, arm: Arm) -> AbstractContextManager[Running]:
        """The arm's processes, from their start to their end; they may not answer yet."""
