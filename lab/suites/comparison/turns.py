"""Variants of a user's own target in turns: both would listen at the same address."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.errors import LabError, UsageError
from lab.stack.engine import Engine, settings_of
from lab.suites.capacity.command import CapacityOptions, search
from lab.suites.comparison.measuring import BlockLoad, Order, Party, Side, measure, rate_alone
from lab.suites.comparison.variants import Variant
from lab.targets.commits import find_commit
from lab.targets.declared import DeclaredTarget
from lab.targets.file import Variation
from lab.targets.starting import put_data_back, running
from lab.targets.variants import vary

# Of the rate that the slower variant answers alone.
_SHARE = 0.6
_OPTION = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)")


def find_target_variant(target: DeclaredTarget, text: str) -> Variant:
    """Return the variant of options (workers=4,threads=2), of a commit, or `.`: the file as it is.

    Raises:
        UsageError: the target has no variants, or none like this.
    """
    if text == ".":
        variant = Variant(text)
    elif "=" in text:
        options = tuple(part.strip() for part in text.split(","))
        variant = Variant(text, options)
    else:
        variant = Variant(text, commit=find_commit(target.start_folder, text))
    vary(target, _variation(variant))
    return variant


def _variation(variant: Variant) -> Variation:
    options = {}
    for assignment in variant.assignments:
        match = _OPTION.fullmatch(assignment)
        if not match:
            raise UsageError(f"'{assignment}' is no option. Write it like workers=4.")
        options[match[1]] = match[2]
    fields = {"options": options} | ({"git": variant.commit} if variant.commit else {})
    return Variation.model_validate(fields)


@dataclass(frozen=True)
class Turns:
    """A target that the lab starts, and stops after each load."""

    engine: Engine
    target: DeclaredTarget
    how = "in turns"

    def find_rate(self, variants: tuple[Variant, Variant], folder: Path) -> float:
        """Return the rate for each of both."""
        rates = []
        for number, variant in enumerate(variants, 1):
            with self._running(variant) as party:
                rates.append(rate_alone(party, None, folder / str(number)))
        return _SHARE * min(rates)

    def block(
        self, variants: tuple[Variant, Variant], load: BlockLoad, folder: Path, order: Order
    ) -> tuple[Side, Side]:
        """Start, load and stop one after the other; the second first if `order.b_first`."""
        sides: dict[int, Side] = {}
        for number in (1, 0) if order.b_first else (0, 1):
            with self._running(variants[number]) as party:
                (sides[number],) = measure([party], load, [folder / str(number + 1)])
        return sides[0], sides[1]

    def capacity(
        self, variant: Variant, options: CapacityOptions, folder: Path, show: Callable[[str], None]
    ) -> dict[str, Any]:
        """Search the capacity of a variant."""
        with self._running(variant) as party:
            return search(self.engine, party.target, options, folder, show)

    @contextmanager
    def _running(self, variant: Variant) -> Iterator[Party]:
        settings = settings_of(self.engine)
        put_data_back(self.target)
        varied = vary(self.target, _variation(variant))
        try:
            with running(varied, settings) as target:
                if not target.pids:
                    raise LabError(
                        f"The processes of {target.name} are not visible from here, so their CPU "
                        "time is not known. Run `lab` as root, or on the target's host."
                    )
                yield Party(self.engine, settings, target, lambda: target.pids)
        except LabError as error:
            raise LabError(f"{variant.name}: {error}") from None
