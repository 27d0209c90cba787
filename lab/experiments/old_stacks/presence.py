"""Which old stacks can run on this machine; made ready before anything is measured."""

from collections.abc import Iterable

from lab.console import note
from lab.errors import LabError, UsageError
from lab.experiments.old_stacks.arms import runner_for
from lab.experiments.old_stacks.pythons import NotHere
from lab.experiments.old_stacks.stacks import stack
from lab.settings import Settings
from lab.stack.engine import Engine


def absent(engine: Engine, settings: Settings, names: Iterable[str]) -> dict[str, str]:
    """Why each of the stacks `names` can't run here; those that can are made ready.

    One that should run here and can't be made is told, and left to fail with its cells.

    Raises:
        UsageError: a stack is not known.
    """
    runner = runner_for(engine, settings)
    reasons = {}
    for name in sorted(set(names)):
        try:
            runner.make(stack(name))
        except NotHere as why:
            reasons[name] = str(why)
        except UsageError:
            raise
        except LabError as why:
            # The others are measured; its own cells will fail of it.
            note(f"The old stack {name} can't be made: {why}")
    return reasons
