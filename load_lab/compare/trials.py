"""Trials of two variants: in two instances at once, or in one, in turns."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from load_lab.capacity.measurement import CapacityOptions, search
from load_lab.compare.cost import BlockLoad, Order, Side, measure, rate_alone
from load_lab.errors import Interrupted, LabError, UsageError
from load_lab.results.arms import alternate
from load_lab.targets.answers import differences
from load_lab.targets.subject import Instance, Running, Variant

# Of the rate that the slower variant answers alone: all together use 60 % of the CPUs.
_SHARE = 0.6
_SHOWN = 5


@dataclass
class Trials:
    """Variants in their instances; `scenario` is None for a target's mix. `unseen` has the services
    that do not count, or not for certain.
    """

    instances: Sequence[Instance]
    scenario: str | None = None
    unseen: list[str] = field(default_factory=list)

    @property
    def at_once(self) -> bool:
        return len(self.instances) > 1

    @property
    def how(self) -> str:
        return "both at once" if self.at_once else "in turns"

    @property
    def loads_of_block(self) -> int:
        return 1 if self.at_once else 2

    def find_rate(
        self, variants: tuple[Variant, Variant], folder: Path, *, may_differ: bool = False
    ) -> float:
        """Return the rate for each of both.

        Raises:
            LabError: a variant does not start, or answers differently.
        """
        rates, answers = [], []
        for number, variant in enumerate(variants):
            with self._running(self._instance(number), variant) as running:
                answers.append(running.find_answers())
                rates.append(rate_alone(running, self.scenario, folder / str(number + 1)))
        different = differences(*answers)
        if different and not may_differ:
            more = [f"{len(different) - _SHOWN} more"] if len(different) > _SHOWN else []
            lines = "\n".join(f"  {each}" for each in (*different[:_SHOWN], *more))
            raise LabError(
                f"The variants answer differently, so their costs can't be compared:\n{lines}\n"
                "If that is meant: --may-differ"
            )
        return _SHARE * min(rates) / len(self.instances)

    def block(
        self, variants: tuple[Variant, Variant], load: BlockLoad, folder: Path, order: Order
    ) -> tuple[Side, Side]:
        """Restart both, load them, and return what each did; the second first if `order.b_first`.
        At once, `order.swapped` exchanges their instances.
        """
        numbers = alternate((0, 1), order.b_first)
        sides: dict[int, Side] = {}
        for group in [numbers] if self.at_once else [(number,) for number in numbers]:
            with ExitStack() as started:
                running = [
                    started.enter_context(
                        self._running(self._instance(n, swapped=order.swapped), variants[n])
                    )
                    for n in group
                ]
                measured = measure(running, load, [folder / str(n + 1) for n in group])
            sides |= zip(group, measured, strict=True)
        return sides[0], sides[1]

    def capacity(
        self, variant: Variant, options: CapacityOptions, folder: Path, show: Callable[[str], None]
    ) -> dict[str, Any]:
        """Search the capacity of a variant in the first instance; a second one is idle."""
        with self._running(self.instances[0], variant) as running:
            return search(running.engine, running.target, options, folder, show)

    def _instance(self, number: int, *, swapped: bool = False) -> Instance:
        return self.instances[(number + swapped) % len(self.instances)]

    @contextmanager
    def _running(self, instance: Instance, variant: Variant) -> Iterator[Running]:
        with ExitStack() as started:
            with _named(variant):
                running = started.enter_context(instance.running(variant))
            running.require_visible("the CPU seconds of its requests")
            yield running
            self.unseen = list(dict.fromkeys((*self.unseen, *running.find_unseen())))


@contextmanager
def _named(variant: Variant) -> Iterator[None]:
    """Name the variant in an error's message."""
    try:
        yield
    except (Interrupted, UsageError):
        raise
    except LabError as error:
        raise LabError(f"{variant.name} does not start: {error}") from None
