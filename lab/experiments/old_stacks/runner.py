"""What runs an arm of an old stack: as processes or as containers, by the engine that runs."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from lab.errors import LabError
from lab.experiments.old_stacks.cpus import ArmCpus
from lab.experiments.old_stacks.stacks import Arm, Stack
from lab.settings import LOOPBACK, Settings
from lab.stack.native.supervision import port_is_taken

# Where a port is looked for: next to the backend's, and not one that a stack usually has.
_PORTS_ABOVE, _PORTS = 100, 100

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


def free_ports(settings: Settings, count: int) -> list[int]:
    """Ports that nothing listens on, in a row above the backend's.

    Raises:
        LabError: there are too few.
    """
    first = settings.LAB_BACKEND_PORT + _PORTS_ABOVE
    looked = range(first, min(first + _PORTS, 2**16))
    free = [port for port in looked if not port_is_taken(LOOPBACK, port)]
    if len(free) < count:
        raise LabError(
            f"No free port for an old stack in {looked.start} to {looked.stop - 1}. Stop what "
            "listens there, or choose another LAB_BACKEND_PORT."
        )
    return free[:count]


def address_facts(arm: Arm, cpus: ArmCpus, port: int, layer_port: int) -> dict[str, Any]:
    """Where an arm listens, and which CPUs it has."""
    facts = {"port": port, "cpus": cpus.server}
    if arm.layer == "redis":
        facts |= {"layer_port": layer_port, "layer_cpus": cpus.layer}
        facts |= {"layer_cpus_shared_with": cpus.shared_with}
    return facts


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
