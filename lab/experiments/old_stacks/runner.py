"""What runs an arm of an old stack: as processes or as containers, by the engine that runs."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from lab.errors import LabError
from lab.experiments.old_stacks.stacks import Arm, Stack
from lab.host.cpus import choose_cpus, expand, usable_cpus
from lab.settings import LOOPBACK, Settings
from lab.stack.native.supervision import port_is_taken

# Daphne's and a worker's: what the layer's CPU may not be taken from.
_KEPT_FOR_SERVER = 2


@dataclass(frozen=True)
class ArmCpus:
    """CPU lists of the server with its workers, and of the layer; and who shares the layer's."""

    server: str
    layer: str
    shared_with: str


def arm_cpus(arm: Arm, settings: Settings) -> ArmCpus:
    """Everything on the target's CPUs, unless the layer is to have one of its own.

    That is one that is nobody's, else one of the target's where two are left without it, else one
    of the load generator's: then it is not its own, which `shared_with` says.
    """
    cpus = choose_cpus(settings)
    if arm.layer_cpu == "target":
        return ArmCpus(cpus.target, cpus.target, "the server")
    target, load = sorted(expand(cpus.target)), sorted(expand(cpus.load))
    free = [cpu for cpu in usable_cpus() if cpu not in {*target, *load}]
    if free:
        return ArmCpus(cpus.target, str(free[0]), "nobody")
    if len(target) > _KEPT_FOR_SERVER:
        *kept, own = target
        return ArmCpus(",".join(map(str, kept)), str(own), "nobody")
    return ArmCpus(cpus.target, str(load[-1]), "the load generator")


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
