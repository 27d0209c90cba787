"""The steps of `lab compare` around its blocks: stacks, order, budget, and the document."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from lab_settings.types import cpu_numbers

from load_lab.capacity.measurement import CapacityOptions, require_budget
from load_lab.capacity.stack_capacity import BUDGET_SECONDS, SECONDS, SLO
from load_lab.compare.at_once import duet
from load_lab.compare.blocks import Block, CompareOptions, Session
from load_lab.compare.cost import BlockLoad, Order, Side
from load_lab.compare.in_turns import turns_of_stack, turns_of_target
from load_lab.compare.result import document_of, head_of
from load_lab.compare.stored_capacities import compare_stored, stored_capacity
from load_lab.compare.variants import Variant, require_comparable
from load_lab.console import Progress, note
from load_lab.errors import Interrupted, LabError, UsageError
from load_lab.interrupts import interruptible, uninterrupted
from load_lab.load.workloads import WRITING_SCENARIOS
from load_lab.machine.cpus import choose_cpus
from load_lab.machine.noise import StealMeter, cpu_speed
from load_lab.paths import project
from load_lab.results.provenance import relative, write_json
from load_lab.settings import Settings, load_settings
from load_lab.stack.engine import Engine, settings_of
from load_lab.stack.exclusive import exclusive_use, prepare
from load_lab.stack.locks import measurement_lock
from load_lab.targets.app_process import put_data_back
from load_lab.targets.declared import DeclaredTarget

# Two stacks at once need it for four blocks.
MIN_BUDGET_SECONDS = 150
# A block: as many requests as say something, but not endlessly.
_LONGEST_BLOCK_SECONDS, _BLOCK_REQUESTS = 40, 60
# Until a block is known to take longer.
_AROUND_BLOCK_SECONDS = 16
_START_SECONDS = 60
# Of the profile `trial` (k6/lib/profiles.js).
_LEAST_RATE = 0.1
# One block in so many has A in both stacks: what this machine tells apart that is the same.
_CONTROL_EVERY, _FIRST_CONTROL = 5, 2


class Method(Protocol):
    """How variants are run for a comparison; `how` describes it. A block has one load or two;
    `swaps` if variants change their places between blocks. `find_unseen` names the services that do
    not count, or not for certain.
    """

    @property
    def how(self) -> str: ...

    @property
    def loads_of_block(self) -> int: ...

    @property
    def swaps(self) -> bool: ...

    @property
    def find_unseen(self) -> Callable[[], Sequence[str]]: ...

    def find_rate(self, variants: tuple[Variant, Variant], folder: Path) -> float: ...

    def block(
        self, variants: tuple[Variant, Variant], load: BlockLoad, folder: Path, order: Order
    ) -> tuple[Side, Side]: ...

    def capacity(
        self, variant: Variant, options: CapacityOptions, folder: Path, show: Callable[[str], None]
    ) -> dict[str, Any]: ...


def validate_options(options: CompareOptions, base: Settings) -> None:
    """Check the options before anything is started.

    Raises:
        UsageError: a setting is unknown, the commits can't be compared, or the budget is short.
    """
    for variant in (options.a, options.b):
        variant.settings(base)
    require_comparable(options.a, options.b)
    _validate_budget(options)


def _validate_budget(options: CompareOptions) -> None:
    require_budget(options.budget, MIN_BUDGET_SECONDS)
    if options.threshold <= 0:
        raise UsageError("--fail-if-slower 0% is too low. Example: 5%.")


def default_budget(engine: Engine, target: str | None) -> str:
    """Return the time in which most comparisons end: in turns, a block has two loads."""
    return "6m" if engine.has_processes and not target else "15m"


def _base_settings(engine: Engine) -> Settings:
    """Return the settings without a variant: those of the running stack, if there is one.

    Raises:
        UsageError: there is no reference app.
    """
    settings = engine.settings() or load_settings()
    if settings.LAB_REFERENCE_APP == "off":
        raise UsageError("LAB_REFERENCE_APP=off, but `lab compare` loads the reference app.")
    return settings


def run(engine: Engine, options: CompareOptions) -> dict[str, Any]:
    """Compare variants of the reference app, store the document, and return it: both at once, on
    docker in turns.

    Raises:
        UsageError: an option is out of range.
        LabError: a variant does not start, or a load failed.
        Interrupted: the user pressed Ctrl-C; the blocks so far are stored.
    """
    base = _base_settings(engine)
    if not engine.has_processes:
        return _run_in_turns(engine, base, options)
    with measurement_lock():
        return run_duet(base, options)


def run_duet(base: Settings, options: CompareOptions) -> dict[str, Any]:
    """Like `run`, with two stacks of the native engine; `base` are the settings of both."""
    validate_options(options, base)
    variants = (options.a, options.b)
    return _compare("native", base, duet(base, variants, str(options.scenario)), options)


def _run_in_turns(engine: Engine, base: Settings, options: CompareOptions) -> dict[str, Any]:
    validate_options(options, base)
    if options.a.commit or options.b.commit:
        raise UsageError(
            "Commits are compared by two stacks at once, which need the native engine. Stop this "
            "one with `lab down`, and set LAB_ENGINE=native. Or compare settings or presets."
        )
    with exclusive_use(engine, keep_settings=True) as stack:
        if options.scenario in WRITING_SCENARIOS:
            prepare(engine, stack)
        turns = turns_of_stack(engine, stack.base, str(options.scenario))
        return _compare(engine.name, stack.base, nullcontext(turns), options)


def run_target(engine: Engine, target: DeclaredTarget, options: CompareOptions) -> dict[str, Any]:
    """Like `run`, for variants of a target of the user's own, in turns; its data are put back."""
    _validate_budget(options)
    with measurement_lock():
        turns = turns_of_target(engine, target)
        with _data_put_back(target):
            return _compare(engine.name, settings_of(engine), nullcontext(turns), options)


@contextmanager
def _data_put_back(target: DeclaredTarget) -> Iterator[None]:
    """Put the data back after the block, whatever ended it; a failure is reported."""
    try:
        yield
    finally:
        with uninterrupted("Putting the data back first; a moment."):
            try:
                put_data_back(target)
            except LabError as error:
                note(f"The data could not be put back: {error}")


def _compare(
    engine_name: str,
    base: Settings,
    method: AbstractContextManager[Method],
    options: CompareOptions,
) -> dict[str, Any]:
    started = time.monotonic()
    folder = project().results / f"compare-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    head = head_of(engine_name, base, options)
    session, document, steal = Session(options), dict[str, Any](), StealMeter()
    with Progress(options.budget) as progress:
        progress.begin("starting the variants", _START_SECONDS, options.budget)
        with method as running:
            folder.mkdir(parents=True)
            try:
                with interruptible():
                    load = _find_load(running, options, folder)
                    for block in _blocks(running, options, load, folder, started, progress):
                        session.add(block)
                        # After each block, so that an interruption loses none.
                        seconds = time.monotonic() - started
                        document = document_of(head, session, load, seconds)
                        document |= {"how": running.how, "files": _files(folder)}
                        document["unseen"] = list(running.find_unseen())
                        write_json(folder / "result.json", document)
                        if session.is_clear:
                            break
                    if options.with_capacity:
                        capacity = _capacities(running, options, folder, progress)
                        document["capacity"] = capacity
            except LabError:
                if document:
                    _store(folder, document)
                    note(f"The blocks so far are in {relative(folder)}.")
                elif not any(folder.iterdir()):
                    folder.rmdir()
                raise
    document["steal"] = round(steal.share(), 4)
    document["cpu_speed"] = round(cpu_speed(cpu_numbers(choose_cpus(base).target)), 2)
    return _store(folder, document)


def _find_load(method: Method, options: CompareOptions, folder: Path) -> BlockLoad:
    rate = method.find_rate((options.a, options.b), folder / "alone")
    if rate < _LEAST_RATE:
        raise LabError(
            f"The slower variant allows {rate:.2g} requests/s, too few to compare. Choose a "
            "cheaper scenario, such as --scenario list."
        )
    wanted = math.ceil(_BLOCK_REQUESTS / rate)
    seconds = min(max(wanted, options.block_seconds), _LONGEST_BLOCK_SECONDS)
    return BlockLoad(options.scenario, round(rate, 2), seconds, options.limit_ms)


def _blocks(
    method: Method,
    options: CompareOptions,
    load: BlockLoad,
    folder: Path,
    started: float,
    progress: Progress,
) -> Iterator[Block]:
    """Yield blocks until the next one would exceed the budget."""
    expected = float(method.loads_of_block * (load.seconds + _AROUND_BLOCK_SECONDS))
    number = 0
    while not number or time.monotonic() - started + expected < options.budget:
        number += 1
        remaining = options.budget - (time.monotonic() - started)
        progress.begin(f"block {number}", expected, max(remaining, expected))
        began = time.monotonic()
        control = not options.is_control and number % _CONTROL_EVERY == _FIRST_CONTROL
        order = Order.of_block(number)
        variants = (options.a, options.a if control else options.b)
        a, b = method.block(variants, load, folder / str(number), order)
        yield Block(number, a, b, method.swaps and order.swapped, control)
        expected = time.monotonic() - began


def _capacities(
    method: Method, options: CompareOptions, folder: Path, progress: Progress
) -> dict[str, Any]:
    """Search the capacity of both, one after the other, and compare them."""
    search_options = CapacityOptions(SLO, options.scenario, budget=BUDGET_SECONDS)
    found = {}
    for side, variant in (("a", options.a), ("b", options.b)):
        remaining = SECONDS * (2 if side == "a" else 1)
        progress.begin(f"capacity of {side.upper()}", SECONDS, remaining)
        # Its loads are named after the folder.
        name = f"{folder.name}-{side}"
        try:
            document = method.capacity(variant, search_options, folder / name, progress.show_step)
            found[side] = (document["headline"], stored_capacity(side.upper(), document))
        except Interrupted:
            raise
        except LabError as error:
            # The verdict stands without it.
            found[side] = (f"not known: {error}", None)
    headlines = {side: headline for side, (headline, _) in found.items()}
    a, b = found["a"][1], found["b"][1]
    compared = compare_stored(a, b, options.threshold) if a and b else {}
    return {"headlines": headlines, **compared}


def _files(folder: Path) -> dict[str, str]:
    return {"folder": relative(folder), "result": relative(folder / "result.json")}


def _store(folder: Path, document: dict[str, Any]) -> dict[str, Any]:
    if any(not block["control"] for block in document["blocks"]):
        # Altair takes half a second to import, which would delay every other command.
        from load_lab.compare.chart import draw

        document["files"]["picture"] = relative(draw(document, folder / "comparison"))
    write_json(folder / "result.json", document)
    return document
