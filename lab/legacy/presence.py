"""Which old stacks can run on this machine; made ready before anything is measured."""

from collections.abc import Iterable

from lab.engine import Engine
from lab.legacy.arms import runner_for
from lab.legacy.pythons import NotHere
from lab.legacy.stacks import stack
from lab.settings import Settings


def absent(engine: Engine, settings: Settings, names: Iterable[str]) -> dict[str, str]:
    """Why each of the stacks `names` can't run here; those that can are made ready.

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
    return reasons
