"""Variants of the reference app, both at once: a duet on two stacks."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from load_lab.capacity.measurement import CapacityOptions, search
from load_lab.compare.cost import BlockLoad, Order, Party, Side, measure, rate_alone, target_pids
from load_lab.compare.two_stacks import Stack, two_stacks
from load_lab.compare.variants import Variant, code_of
from load_lab.interrupts import uninterrupted
from load_lab.load.workloads import WRITING_SCENARIOS
from load_lab.settings import Settings
from load_lab.stack import database

# Of the rate that the slower variant answers alone: both together use 60 % of the CPUs.
_SHARE = 0.3


@dataclass(frozen=True)
class Duet:
    """Two stacks, and the code of each commit."""

    stacks: tuple[Stack, Stack]
    codes: dict[str | None, Path]
    scenario: str
    how = "both at once"
    loads_of_block = 1
    swaps = True
    find_unseen = tuple

    def find_rate(self, variants: tuple[Variant, Variant], folder: Path) -> float:
        """Return the rate for each of both."""
        rates = []
        for stack, variant in zip(self.stacks, variants, strict=True):
            self._restart(stack, variant)
            rates.append(rate_alone(_party(stack), self.scenario, folder / str(stack.number)))
        return _SHARE * min(rates)

    def block(
        self, variants: tuple[Variant, Variant], load: BlockLoad, folder: Path, order: Order
    ) -> tuple[Side, Side]:
        """Restart both, load both at once, and return what each did. If `order.swapped`, the first
        variant runs in the second stack.
        """
        stacks = self.stacks[::-1] if order.swapped else self.stacks
        pairs = list(zip(stacks, variants, strict=True))[:: -1 if order.b_first else 1]
        for stack, variant in pairs:
            self._restart(stack, variant)
        folders = [folder / str(stack.number) for stack, _ in pairs]
        first, second = measure([_party(stack) for stack, _ in pairs], load, folders)
        return (second, first) if order.b_first else (first, second)

    def capacity(
        self, variant: Variant, options: CapacityOptions, folder: Path, show: Callable[[str], None]
    ) -> dict[str, Any]:
        """Search the capacity of a variant in the first stack; the second one is idle."""
        stack = self.stacks[0]
        self._restart(stack, variant)
        return search(stack.engine, stack.target, options, folder, show)

    def _restart(self, stack: Stack, variant: Variant) -> None:
        stack.restart(variant, self.codes[variant.commit], resets_data=self.writes)

    @property
    def writes(self) -> bool:
        """Return whether the requests change the data."""
        return self.scenario in WRITING_SCENARIOS


def _party(stack: Stack) -> Party:
    return Party(stack.engine, stack.base, stack.target, partial(target_pids, stack.engine))


@contextmanager
def duet(base: Settings, variants: Sequence[Variant], scenario: str) -> Iterator[Duet]:
    """Start both stacks, and stop them afterwards.

    Raises:
        LabError: a stack does not start, or a commit can't be installed.
    """
    with ExitStack() as exit_stack:
        by_commit = {variant.commit: variant for variant in variants}
        codes = {
            commit: exit_stack.enter_context(code_of(variant))
            for commit, variant in by_commit.items()
        }
        found = Duet(exit_stack.enter_context(two_stacks(base)), codes, scenario)
        if found.writes:
            exit_stack.enter_context(_data_kept(found.stacks))
        yield found


@contextmanager
def _data_kept(stacks: Sequence[Stack]) -> Iterator[None]:
    """Let restarts put the data back, and do so at the end: the next comparison has it, too."""
    for stack in stacks:
        database.prepare_template(stack.engine, stack.base)
    try:
        yield
    finally:
        with uninterrupted("Putting the data back first; a moment."):
            for stack in stacks:
                database.restore(stack.engine)
