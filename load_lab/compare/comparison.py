"""The steps of `lab compare` around its blocks: stacks, order, budget, and the document."""

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lab_settings.types import cpu_numbers

from load_lab.capacity.measurement import CapacityOptions, require_budget
from load_lab.capacity.target_capacity import BUDGET_SECONDS, SECONDS, SLO
from load_lab.compare.blocks import Block, CompareOptions, Session
from load_lab.compare.cost import BlockLoad, Order
from load_lab.compare.result import document_of, head_of
from load_lab.compare.stored_capacities import compare_stored, stored_capacity
from load_lab.compare.trials import Trials
from load_lab.console import Progress, note
from load_lab.errors import Interrupted, LabError, UsageError
from load_lab.interrupts import interruptible
from load_lab.machine.cpus import choose_cpus
from load_lab.machine.noise import StealMeter, cpu_speed
from load_lab.paths import project
from load_lab.results.provenance import relative, write_json
from load_lab.targets.subject import Instance, Subject

# Two at once need it for four blocks.
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


def _validate_budget(options: CompareOptions) -> None:
    require_budget(options.budget, MIN_BUDGET_SECONDS)
    if options.threshold <= 0:
        raise UsageError("--fail-if-slower 0% is too low. Example: 5%.")


def default_budget(*, at_once: bool) -> str:
    """Return the time in which most comparisons end: in turns, a block has two loads."""
    return "6m" if at_once else "15m"


def run(subject: Subject, options: CompareOptions, *, at_once: bool) -> dict[str, Any]:
    """Compare variants of a target, store the document, and return it.

    Raises:
        UsageError: an option is out of range, a variant is invalid, or they can't run at once.
        LabError: a variant does not start, or a load failed.
        Interrupted: the user pressed Ctrl-C; the blocks so far are stored.
    """
    _validate_budget(options)
    instances = subject.instances((options.a, options.b), at_once=at_once)
    return _compare(subject, instances, options)


def _compare(
    subject: Subject,
    instances: AbstractContextManager[Sequence[Instance]],
    options: CompareOptions,
) -> dict[str, Any]:
    started = time.monotonic()
    folder = project().results / f"compare-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    session, document, steal = Session(options), dict[str, Any](), StealMeter()
    with Progress(options.budget) as progress:
        progress.begin("starting the variants", _START_SECONDS, options.budget)
        with instances as found:
            base, trials = subject.settings, Trials(found, options.scenario)
            head = head_of(subject.engine.name, base, options)
            folder.mkdir(parents=True)
            try:
                with interruptible():
                    load = _find_load(trials, options, folder)
                    for block in _blocks(trials, options, load, folder, started, progress):
                        session.add(block)
                        # After each block, so that an interruption loses none.
                        seconds = time.monotonic() - started
                        document = document_of(head, session, load, seconds)
                        document |= {"how": trials.how, "files": _files(folder)}
                        document["unseen"] = trials.unseen
                        write_json(folder / "result.json", document)
                        if session.is_clear:
                            break
                    if options.with_capacity:
                        capacity = _capacities(trials, options, folder, progress)
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


def _find_load(trials: Trials, options: CompareOptions, folder: Path) -> BlockLoad:
    rate = trials.find_rate((options.a, options.b), folder / "alone", may_differ=options.may_differ)
    if rate < _LEAST_RATE:
        raise LabError(
            f"The slower variant allows {rate:.2g} requests/s, too few to compare. Choose a "
            "cheaper scenario, such as --scenario list."
        )
    wanted = math.ceil(_BLOCK_REQUESTS / rate)
    seconds = min(max(wanted, options.block_seconds), _LONGEST_BLOCK_SECONDS)
    return BlockLoad(options.scenario, round(rate, 2), seconds, options.limit_ms)


def _blocks(
    trials: Trials,
    options: CompareOptions,
    load: BlockLoad,
    folder: Path,
    started: float,
    progress: Progress,
) -> Iterator[Block]:
    """Yield blocks until the next one would exceed the budget."""
    expected = float(trials.loads_of_block * (load.seconds + _AROUND_BLOCK_SECONDS))
    number = 0
    while not number or time.monotonic() - started + expected < options.budget:
        number += 1
        remaining = options.budget - (time.monotonic() - started)
        progress.begin(f"block {number}", expected, max(remaining, expected))
        began = time.monotonic()
        control = not options.is_control and number % _CONTROL_EVERY == _FIRST_CONTROL
        order = Order.of_block(number)
        variants = (options.a, options.a if control else options.b)
        a, b = trials.block(variants, load, folder / str(number), order)
        yield Block(number, a, b, trials.at_once and order.swapped, control)
        expected = time.monotonic() - began


def _capacities(
    trials: Trials, options: CompareOptions, folder: Path, progress: Progress
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
            document = trials.capacity(variant, search_options, folder / name, progress.show_step)
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
