"""The steps of `lab compare` around its blocks: stacks, order, budget, and the document."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from lab.analysis.comparison import (
    Pair,
    Ratio,
    Verdict,
    estimate,
    fails_more,
    is_clear,
    judge,
)
from lab.analysis.counters import add, quantile
from lab.analysis.provenance import host, relative, write_json
from lab.console import Progress, note
from lab.errors import Interrupted, LabError, UsageError
from lab.host.cpus import choose_cpus, expand
from lab.host.noise import StealMeter, cpu_speed
from lab.load.workloads import WRITING_SCENARIOS
from lab.paths import RESULTS
from lab.settings import Settings, load_settings
from lab.stack.engine import Engine, settings_of
from lab.stack.exclusive import exclusive_use, prepare
from lab.stack.locks import measurement_lock
from lab.suites.capacity.command import LAST_SECONDS, CapacityOptions
from lab.suites.capacity.stack import SLO
from lab.suites.comparison.duet import duet
from lab.suites.comparison.measuring import BlockLoad, Order, Side
from lab.suites.comparison.stored import compare_stored, stored_capacity
from lab.suites.comparison.turns import turns_of_stack, turns_of_target
from lab.suites.comparison.variants import Variant, require_comparable
from lab.targets.declared import DeclaredTarget

# History of the format:
# 1: first.
SCHEMA_VERSION = 1

MIN_BUDGET_SECONDS = 120
# A block: as many requests as say something, but not endlessly.
_LONGEST_BLOCK_SECONDS, _BLOCK_REQUESTS = 40, 60
# The budget of each search.
_CAPACITY_SECONDS = 150
# Until a block is known to take longer.
_AROUND_BLOCK_SECONDS = 16
_START_SECONDS = 60
# Of the profile `trial` (k6/lib/profiles.js).
_LEAST_RATE = 0.1
# One block in so many has A in both stacks: what this machine tells apart that is the same.
_CONTROL_EVERY, _FIRST_CONTROL = 5, 2
# Where the CPU is less than this share of the response time, the response time is judged as well.
_CPU_SHARE = 0.5
_QUANTILES = tuple(share / 100 for share in (1, 5, *range(10, 91, 10), 95, 99))
_METRICS = ("cpu_ms", "p50_ms", "p95_ms", "p99_ms", "memory_bytes")


class Method(Protocol):
    """How variants are run for a comparison; `how` describes it. A block has one load or two."""

    @property
    def how(self) -> str: ...

    @property
    def loads_of_block(self) -> int: ...

    def find_rate(self, variants: tuple[Variant, Variant], folder: Path) -> float: ...

    def block(
        self, variants: tuple[Variant, Variant], load: BlockLoad, folder: Path, order: Order
    ) -> tuple[Side, Side]: ...

    def capacity(
        self, variant: Variant, options: CapacityOptions, folder: Path, show: Callable[[str], None]
    ) -> dict[str, Any]: ...


@dataclass(frozen=True)
class CompareOptions:
    """What to compare, by which requests; how long at most, in seconds; from which difference on B
    is slower, as a share; and the least length of a block;
    and whether each one's capacity is searched, too, after the budget.
    """

    a: Variant
    b: Variant
    scenario: str | None
    budget: float
    threshold: float
    limit_ms: int = 1000
    block_seconds: int = 20
    with_capacity: bool = False

    @property
    def is_control(self) -> bool:
        """Return whether both are the same: then the machine is compared with itself."""
        return (self.a.assignments, self.a.commit) == (self.b.assignments, self.b.commit)


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
    if options.budget < MIN_BUDGET_SECONDS:
        raise UsageError(
            f"--budget {options.budget:g}s is too short for an answer. Set it to "
            f"{MIN_BUDGET_SECONDS}s or more."
        )
    if options.threshold <= 0:
        raise UsageError("--fail-if-slower 0% can't be told. Set it like 5%.")


def default_budget(engine: Engine, target: str | None) -> str:
    """Return the time in which most comparisons end: containers take long to restart."""
    return "15m" if engine.name == "docker" and target is None else "6m"


def _base_settings(engine: Engine) -> Settings:
    """Return the settings without a variant: those of the running stack, if there is one.

    Raises:
        UsageError: there is no reference app.
    """
    settings = engine.settings() or load_settings()
    if settings.LAB_REFERENCE_APP == "off":
        raise UsageError("LAB_REFERENCE_APP=off, but `lab compare` loads the reference app.")
    return settings


@dataclass(frozen=True)
class Block:
    """A restart of both; `swapped` if B was in the first stack, `control` if A was in both."""

    number: int
    a: Side
    b: Side
    swapped: bool
    control: bool


@dataclass
class _Comparison:
    options: CompareOptions
    blocks: list[Block] = field(default_factory=list)

    def pairs(self, metric: str, *, control: bool = False) -> list[Pair]:
        return [
            Pair(getattr(block.a, metric) or 0, getattr(block.b, metric) or 0, block.swapped)
            for block in self.blocks
            if block.control == control
        ]

    def ratio(self, metric: str) -> Ratio | None:
        return estimate(self.pairs(metric))

    @property
    def judged(self) -> list[str]:
        """Return the metrics that decide: CPU per request; and the median response time, if most
        of it is spent elsewhere.
        """
        sides = [side for block in self.blocks for side in (block.a, block.b)]
        elsewhere = [side for side in sides if side.cpu_ms < _CPU_SHARE * side.p50_ms]
        return ["cpu_ms", "p50_ms"] if len(elsewhere) > len(sides) / 2 else ["cpu_ms"]

    @property
    def verdict(self) -> Verdict:
        """Return the worst of the verdicts: slower in one is slower."""
        verdicts = [judge(self.ratio(name), self.options.threshold) for name in self.judged]
        if self.fails_more:
            return "slower"
        order: tuple[Verdict, ...] = ("slower", "can't tell", "faster", "not slower")
        return next(verdict for verdict in order if verdict in verdicts)

    @property
    def fails_more(self) -> bool:
        """Return whether B fails more often than A."""
        counted = [block for block in self.blocks if not block.control]
        failed = [round(sum(getattr(block, name).failed for block in counted)) for name in "ab"]
        requests = [round(sum(getattr(block, name).requests for block in counted)) for name in "ab"]
        return fails_more(failed[0], requests[0], failed[1], requests[1])

    @property
    def is_clear(self) -> bool:
        threshold = self.options.threshold
        return all(is_clear(self.pairs(name), threshold) for name in self.judged)


def run(engine: Engine, options: CompareOptions) -> dict[str, Any]:
    """Compare variants of the reference app, store the document, and return it: both at once, on
    docker in turns.

    Raises:
        UsageError: an option is out of range.
        LabError: a variant does not start, or a load failed.
        Interrupted: the user pressed Ctrl-C; the blocks so far are stored.
    """
    base = _base_settings(engine)
    if engine.name == "docker":
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
    """Like `run`, for variants of a target of the user's own, in turns."""
    _validate_budget(options)
    with measurement_lock():
        turns = turns_of_target(engine, target)
        return _compare(engine.name, settings_of(engine), nullcontext(turns), options)


def _compare(
    engine_name: str,
    base: Settings,
    method: AbstractContextManager[Method],
    options: CompareOptions,
) -> dict[str, Any]:
    started = time.monotonic()
    folder = RESULTS / f"compare-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    cpus = choose_cpus(base)
    head = _head(engine_name, base, options)
    comparison = _Comparison(options)
    steal = StealMeter()
    with Progress(options.budget) as progress:
        progress.begin("starting the variants", _START_SECONDS, options.budget)
        with method as running:
            folder.mkdir(parents=True)
            try:
                load = _find_load(running, options, folder)
                for block in _blocks(running, options, load, folder, started, progress):
                    comparison.blocks.append(block)
                    # After each block, so that an interruption loses none.
                    seconds = time.monotonic() - started
                    document = _document(head, comparison, load, seconds)
                    document |= {"how": running.how, "files": _files(folder)}
                    write_json(folder / "result.json", document)
                    if comparison.is_clear:
                        break
                if options.with_capacity:
                    document["capacity"] = _capacities(running, options, folder, progress)
                    write_json(folder / "result.json", document)
            except (Interrupted, LabError):
                if comparison.blocks:
                    note(f"The blocks so far are in {relative(folder / 'result.json')}.")
                elif not any(folder.iterdir()):
                    folder.rmdir()
                raise
    document["steal"] = round(steal.share(), 4)
    document["cpu_speed"] = round(cpu_speed(expand(cpus.target)), 2)
    return _store(folder, document, comparison)


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
        yield Block(number, a, b, order.swapped, control)
        expected = time.monotonic() - began


def _capacities(
    method: Method, options: CompareOptions, folder: Path, progress: Progress
) -> dict[str, Any]:
    """Search the capacity of both, one after the other, and compare them."""
    search_options = CapacityOptions(SLO, options.scenario, budget=_CAPACITY_SECONDS)
    seconds = _CAPACITY_SECONDS + LAST_SECONDS
    found = {}
    for side, variant in (("a", options.a), ("b", options.b)):
        remaining = seconds * (2 if side == "a" else 1)
        progress.begin(f"capacity of {side.upper()}", seconds, remaining)
        # Its loads are named after the folder.
        name = f"{folder.name}-{side}"
        try:
            document = method.capacity(variant, search_options, folder / name, progress.show_step)
            found[side] = (document["headline"], stored_capacity(side.upper(), document))
        except LabError as error:
            # The verdict stands without it.
            found[side] = (f"not known: {error}", None)
    headlines = {side: headline for side, (headline, _) in found.items()}
    a, b = found["a"][1], found["b"][1]
    compared = compare_stored(a, b, options.threshold) if a and b else {}
    return {"headlines": headlines, **compared}


def _head(engine_name: str, base: Settings, options: CompareOptions) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "a": _variant(options.a),
        "b": _variant(options.b),
        "is_control": options.is_control,
        "scenario": options.scenario or "mix",
        "threshold": options.threshold,
        "budget_seconds": options.budget,
        "settings": base.model_dump(),
        "host": host(base, engine_name),
    }


def _variant(variant: Variant) -> dict[str, Any]:
    return {
        "name": variant.name,
        "settings": list(variant.assignments),
        "commit": variant.commit,
    }


def _document(
    head: dict[str, Any], comparison: _Comparison, load: BlockLoad, seconds: float
) -> dict[str, Any]:
    ratios = {name: comparison.ratio(name) for name in _METRICS}
    return {
        **head,
        "verdict": comparison.verdict,
        "headline": headline(comparison),
        "judged": comparison.judged,
        "rate": load.rate,
        "seconds": round(seconds, 1),
        "ratios": {name: _ratio(ratio, comparison) for name, ratio in ratios.items()},
        "sides": {name: _totals(comparison.blocks, name) for name in "ab"},
        "control": [
            round(pair.b / pair.a, 4)
            for pair in comparison.pairs("cpu_ms", control=not comparison.options.is_control)
        ],
        "blocks": [_block(block) for block in comparison.blocks],
        "distributions": {name: _distribution(comparison.blocks, name) for name in "ab"},
    }


def headline(comparison: _Comparison) -> str:
    """Return the answer in one line."""
    options, verdict = comparison.options, comparison.verdict
    if comparison.fails_more:
        return "slower: more of B's requests failed than of A's"
    ratios = {name: comparison.ratio(name) for name in comparison.judged}
    deciding = next(
        (name for name, ratio in ratios.items() if judge(ratio, options.threshold) == verdict),
        "cpu_ms",
    )
    ratio = ratios.get(deciding)
    if ratio is None:
        return f"can't tell: {len(comparison.blocks)} blocks are too few"
    what = {"cpu_ms": "CPU per request", "p50_ms": "median response time"}[deciding]
    value = f"{ratio.ratio:.3g} × the {what} of A ({ratio.low:.3g} to {ratio.high:.3g})"
    percent = f"{options.threshold:.0%}"
    if options.is_control:
        return f"A against A: {value}; this machine can tell {ratio.resolution:.1%} now"
    texts = {
        "slower": f"slower: B needs {value}",
        "faster": f"faster: B needs {value}",
        "not slower": f"not slower by {percent}: B needs {value}",
        "can't tell": f"can't tell (this machine can tell {ratio.resolution:.1%} now): B needs "
        f"{value}",
    }
    return texts[verdict]


def _ratio(ratio: Ratio | None, comparison: _Comparison) -> dict[str, Any] | None:
    if ratio is None:
        return None
    values = {name: round(getattr(ratio, name), 4) for name in ("ratio", "low", "high")}
    verdict = judge(ratio, comparison.options.threshold)
    return {**values, "resolution": round(ratio.resolution, 4), "verdict": verdict}


def _totals(blocks: Sequence[Block], name: str) -> dict[str, Any]:
    sides = [getattr(block, name) for block in blocks if not block.control]
    requests = sum(side.requests for side in sides)
    weighted = {
        metric: round(sum(getattr(side, metric) * side.requests for side in sides) / requests, 3)
        if requests
        else None
        for metric in ("cpu_ms", "p50_ms", "p95_ms", "p99_ms")
    }
    memory = [side.memory_bytes for side in sides if side.memory_bytes]
    return {
        **weighted,
        "requests": round(requests),
        "failed": round(sum(side.failed for side in sides)),
        "late": round(sum(side.late for side in sides)),
        "memory_bytes": max(memory, default=None),
    }


def _block(block: Block) -> dict[str, Any]:
    names = ("requests", "failed", "late", "cpu_ms", "p50_ms", "p95_ms", "p99_ms", "memory_bytes")
    return {
        "number": block.number,
        "swapped": block.swapped,
        "control": block.control,
        "ratio": round(block.b.cpu_ms / block.a.cpu_ms, 4) if block.a.cpu_ms else None,
        **{
            side: {name: _rounded(getattr(getattr(block, side), name)) for name in names}
            for side in "ab"
        },
        "points": [list(pair) for pair in zip(block.a.points, block.b.points, strict=False)],
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else round(value, 3)


def _distribution(blocks: Sequence[Block], name: str) -> list[dict[str, float]]:
    """Return quantiles of the response times in ms, of all blocks together."""
    histogram = add(getattr(block, name).histogram for block in blocks if not block.control)
    values = {share: quantile(histogram, share) for share in _QUANTILES}
    return [
        {"share": share, "ms": round(1000 * value, 2)}
        for share, value in values.items()
        if value is not None
    ]


def _files(folder: Path) -> dict[str, str]:
    return {"folder": relative(folder), "result": relative(folder / "result.json")}


def _store(folder: Path, document: dict[str, Any], comparison: _Comparison) -> dict[str, Any]:
    if any(not block.control for block in comparison.blocks):
        # Altair takes half a second to import, which would delay every other command.
        from lab.charts.comparison import draw

        document["files"]["picture"] = relative(draw(document, folder / "comparison"))
    write_json(folder / "result.json", document)
    return document
