"""Which CPUs an arm's own processes get, and which its channel layer."""

from dataclasses import dataclass

from lab.experiments.old_stacks.stacks import Arm
from lab.host.cpus import choose_cpus, expand, usable_cpus
from lab.settings import Settings

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
