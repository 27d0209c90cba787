"""Runners of an old stack's arm: as processes or as containers, by the active engine."""

from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from lab_settings.types import cpu_numbers

from load_lab.errors import LabError
from load_lab.experiments.legacy.stacks import Arm, Stack
from load_lab.machine.cpus import choose_cpus, usable_cpus
from load_lab.settings import LOOPBACK, Settings
from load_lab.stack.native.supervision import port_is_open
from load_lab.targets.target import PlainServer

# CPUs for Daphne and a worker: the layer's CPU must not be one of them.
_MIN_SERVER_CPUS = 2


@dataclass(frozen=True)
class ArmCpus:
    """CPU lists of the server and its workers, and of the layer; what shares the layer's CPU."""

    server: str
    layer: str
    shared_with: str


def arm_cpus(arm: Arm, settings: Settings) -> ArmCpus:
    """Return the target's CPUs for everything, unless the layer needs a separate CPU.

    That is an unused CPU; otherwise one of the target's, if that leaves two; otherwise one of the
    load generator's. The last is shared, as `shared_with` shows.
    """
    cpus = choose_cpus(settings)
    if arm.layer_cpu == "target":
        return ArmCpus(cpus.target, cpus.target, "the server")
    target, load = sorted(cpu_numbers(cpus.target)), sorted(cpu_numbers(cpus.load))
    free = [cpu for cpu in usable_cpus() if cpu not in {*target, *load}]
    if free:
        return ArmCpus(cpus.target, str(free[0]), "nobody")
    if len(target) > _MIN_SERVER_CPUS:
        *server, layer = target
        return ArmCpus(",".join(map(str, server)), str(layer), "nobody")
    return ArmCpus(cpus.target, str(load[-1]), "the load generator")


# Where to search for a port: above the backend's, outside a stack's usual ports.
_PORT_OFFSET, _PORT_COUNT = 100, 100

# The old stacks' database, in the running stack's Postgres.
DATABASE = "legacy"


@dataclass(frozen=True)
class RunningArm:
    """A started arm. The verification adds to `facts`."""

    target: PlainServer
    facts: dict[str, Any] = field(default_factory=dict)


def free_ports(settings: Settings, count: int) -> list[int]:
    """Return unused ports in ascending order, above the backend's.

    Raises:
        LabError: there are too few.
    """
    first = settings.LAB_BACKEND_PORT + _PORT_OFFSET
    ports = range(first, min(first + _PORT_COUNT, 2**16))
    free = [port for port in ports if not port_is_open(LOOPBACK, port)]
    if len(free) < count:
        raise LabError(
            f"No free port for an old stack in {ports.start} to {ports.stop - 1}. Stop what "
            "listens there, or choose another LAB_BACKEND_PORT."
        )
    return free[:count]


def address_facts(arm: Arm, cpus: ArmCpus, port: int, layer_port: int) -> dict[str, Any]:
    """Return the ports and CPUs of an arm."""
    facts = {"port": port, "cpus": cpus.server}
    if arm.layer == "redis":
        facts |= {"layer_port": layer_port, "layer_cpus": cpus.layer}
        facts |= {"layer_cpus_shared_with": cpus.shared_with}
    return facts


class LegacyRunner(Protocol):
    """A way to run old stacks."""

    def make(self, stack: Stack) -> None:
        """Create the stack's environment or image, unless it exists.

        Raises MissingRequirement if this machine lacks something for it.
        """

    def prepare(self, stack: Stack) -> None:
        """Fill the stack's database, unless it is filled."""

    def running(self, stack: Stack, arm: Arm) -> AbstractContextManager[RunningArm]:
        """Run the arm's processes for the context; they may not respond yet at its start."""
