"""Variants in turns, where both would listen at the same address: a user's own target, and the
reference app on docker.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from load_lab.capacity.measurement import CapacityOptions, search
from load_lab.compare.cost import BlockLoad, Order, Party, Side, measure, rate_alone, target_pids
from load_lab.compare.variants import Variant
from load_lab.errors import Interrupted, LabError, UsageError
from load_lab.load.workloads import WRITING_SCENARIOS
from load_lab.settings import Settings
from load_lab.stack import database
from load_lab.stack.engine import Engine, settings_of
from load_lab.targets.app_process import put_data_back, running
from load_lab.targets.commits import find_commit
from load_lab.targets.declared import DeclaredTarget
from load_lab.targets.file import Variation
from load_lab.targets.reference.app import ReferenceApp
from load_lab.targets.variants import vary

# Of the rate that the slower variant answers alone.
_SHARE = 0.6
# In each second of a warm-up, until a database is known.
_LOOK_SECONDS = 0.4
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
            raise UsageError(f"'{assignment}' is not an option. Example: workers=4.")
        options[match[1]] = match[2]
    fields = {"options": options} | ({"git": variant.commit} if variant.commit else {})
    return Variation.model_validate(fields)


@dataclass(frozen=True)
class Turns:
    """One variant after the other. `running` starts one for the block, with what the other one
    stored removed; None as `scenario` is a target's mix.
    """

    running: Callable[[Variant], AbstractContextManager[Party]]
    scenario: str | None = None
    find_unseen: Callable[[], Sequence[str]] = tuple
    how = "in turns"
    loads_of_block = 2
    swaps = False

    def find_rate(self, variants: tuple[Variant, Variant], folder: Path) -> float:
        """Return the rate for each of both."""
        rates = []
        for number, variant in enumerate(variants, 1):
            with self.running(variant) as party:
                rates.append(rate_alone(party, self.scenario, folder / str(number)))
        return _SHARE * min(rates)

    def block(
        self, variants: tuple[Variant, Variant], load: BlockLoad, folder: Path, order: Order
    ) -> tuple[Side, Side]:
        """Start, load and stop one after the other; the second first if `order.b_first`."""
        sides: dict[int, Side] = {}
        for number in (1, 0) if order.b_first else (0, 1):
            with self.running(variants[number]) as party:
                (sides[number],) = measure([party], load, [folder / str(number + 1)])
        return sides[0], sides[1]

    def capacity(
        self, variant: Variant, options: CapacityOptions, folder: Path, show: Callable[[str], None]
    ) -> dict[str, Any]:
        """Search the capacity of a variant."""
        with self.running(variant) as party:
            return search(party.engine, party.target, options, folder, show)


def turns_of_target(engine: Engine, target: DeclaredTarget) -> Turns:
    """Return the turns of a target that the lab starts, and stops after each load."""
    return Turns(partial(_run_target, engine, target), find_unseen=target.unseen_services)


def turns_of_stack(engine: Engine, base: Settings, scenario: str) -> Turns:
    """Return the turns of the running stack, whose settings change; it is not put back. For
    bookings, the data must be prepared.
    """
    return Turns(partial(_run_stack, engine, base, scenario), scenario)


@contextmanager
def _run_target(engine: Engine, target: DeclaredTarget, variant: Variant) -> Iterator[Party]:
    settings = settings_of(engine)
    put_data_back(target)
    varied = vary(target, _variation(variant))
    with _named(variant), running(varied, settings) as started:
        _require_visible(started.pids, started.name)
        look = partial(started.look_for_database, _LOOK_SECONDS)
        yield Party(engine, settings, started, lambda: started.pids, look)


@contextmanager
def _run_stack(engine: Engine, base: Settings, scenario: str, variant: Variant) -> Iterator[Party]:
    settings = variant.settings(base)
    with _named(variant):
        with engine.empty_caches(settings):
            if scenario in WRITING_SCENARIOS:
                database.restore(engine)
        _require_visible(target_pids(engine), "the stack")
        yield Party(engine, settings, ReferenceApp(engine), partial(target_pids, engine))


def _require_visible(pids: Mapping[str, int], name: str) -> None:
    if not pids:
        raise LabError(
            f"The processes of {name} are not visible from here, so their CPU time is not known. "
            "Run `lab` as root on the target's host: Linux, since Docker Desktop's containers run "
            "in a virtual machine."
        )


@contextmanager
def _named(variant: Variant) -> Iterator[None]:
    """Name the variant in an error's message."""
    try:
        yield
    except (Interrupted, UsageError):
        raise
    except LabError as error:
        raise LabError(f"{variant.name}: {error}") from None
