"""The interface of a target, and a server of which the lab knows nothing but its processes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from load_lab.machine.observer import Watched
from load_lab.stack.http import address


class Target(Protocol):
    """What k6 loads."""

    @property
    def name(self) -> str:
        """Its name in results."""

    @property
    def url(self) -> str:
        """Where k6 sends its requests."""

    @property
    def description(self) -> str:
        """What it is, for the title of a chart."""

    @property
    def pids(self) -> Mapping[str, int]:
        """The main process of each of its services, beside those of the stack."""

    @property
    def is_observed(self) -> bool:
        """Whether the lab sees its processes, and so the CPU time that it uses."""

    @property
    def uncached(self) -> Mapping[str, str]:
        """Operations that a cache in front of it should store, but may not, and why."""

    def require_ready(self) -> None:
        """Raise LabError unless it can be loaded."""

    def require_alive(self) -> None:
        """Raise LabError if it went down: a crash is not a break under load."""

    def watched(self) -> Watched:
        """Return what is looked at during a load."""

    def k6_env(self) -> dict[str, str]:
        """Return what k6 needs in addition to the address, as environment variables."""


def no_check() -> None:
    """Check nothing."""


@dataclass(frozen=True)
class PlainServer:
    """A server that the lab started itself; `check` raises LabError if one of `pids` has ended."""

    name: str
    url: str
    description: str
    pids: Mapping[str, int] = field(default_factory=dict)
    check: Callable[[], None] = no_check
    is_observed: ClassVar[bool] = True
    uncached: ClassVar[dict[str, str]] = {}

    def require_ready(self) -> None:
        self.check()

    def require_alive(self) -> None:
        self.check()

    def watched(self) -> Watched:
        return Watched(tuple(self.pids.values()), (address(self.url)[1],), services=self.pids)

    def k6_env(self) -> dict[str, str]:
        return {}
