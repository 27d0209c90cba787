"""`lab bench --growth`: the fast path with a hundred times as much data."""

from dataclasses import dataclass
from typing import Any

from load_lab.bench import benchmark
from load_lab.bench.benchmark import NEEDS_PROCESSES, row_document
from load_lab.bench.rows import Target, Variant
from load_lab.bench.sample import Sample, Samples, evaluate
from load_lab.bench.variants import Bench, id_of
from load_lab.console import step
from load_lab.results.provenance import facts, store_result
from load_lab.stack.engine import Engine, require_processes
from load_lab.stack.exclusive import exclusive_use, prepare
from load_lab.targets.reference import large_dataset
from load_lab.targets.reference.app import reported_facts
from load_lab.targets.reference.large_dataset import Size

# Disk use of a neighbour slows bookings down for half a minute, which could be all of three
# repeats.
_REPEATS, _SECONDS = 5, 10

_FAST = {"LAB_DETAIL": "fast", "LAB_BOOKING": "fast"}
_DETAIL = Variant("detail", "detail", _FAST)
_BOOKING = Variant("booking", "booking", _FAST)


@dataclass(frozen=True)
class GrowthRow:
    """One metric, from the samples that `target` names in each pair."""

    name: str
    path: str
    target: Target


# small, grown: the active database; once, tenfold: the bookings of the page.
ROWS = (
    GrowthRow(
        "growth-detail",
        "detail with ten times the bookings",
        Target("tenfold", "once", 11, 11, metric="time"),
    ),
    GrowthRow(
        "growth-booking",
        "POST /api/booking/ with 10 million bookings",
        Target("booking grown", "booking small", 0.8, 0.8),
    ),
    GrowthRow(
        "growth-pages",
        "detail with 2,000 pages",
        # Equal, except for the difference between two measurements of the same thing.
        Target("detail grown", "detail small", 0.9, 0.9),
    ),
)


def run(
    engine: Engine, *, repeats: int | None, seconds: int | None, size: Size | None = None
) -> dict[str, Any]:
    """Fill a copy of the data, measure it and the data as loaded, and store the document.

    Raises:
        UsageError: the engine is not native.
        LabError: there is too little disk space, or the stack failed.
        Interrupted: the user pressed Ctrl-C.
    """
    require_processes(engine, "bench", NEEDS_PROCESSES)
    repeats, seconds = repeats or _REPEATS, seconds or _SECONDS
    with exclusive_use(engine) as stack:
        large_dataset.check_disk()
        prepare(engine, stack)
        reported = reported_facts(engine, stack.base)
        with facts(engine, stack.base, reported, benchmark.versions()) as provenance:
            pairs = _pairs(Bench(engine, stack.base), repeats, seconds, size or Size())
    rows = [
        row_document(row.name, row.path, [evaluate(row.target, pairs, check=False)], pairs)
        for row in ROWS
    ]
    return store_result(
        "bench-growth",
        {**provenance, "repeats": repeats, "seconds": seconds, "check": False, "rows": rows},
    )


def _pairs(bench: Bench, repeats: int, seconds: int, size: Size) -> list[Samples]:
    """Measure everything `repeats` times; every other time the large dataset comes first."""
    bench.verify_variant(_DETAIL)
    pages = sorted(bench.pages)
    plain, tenfold = pages[0], pages[-1]
    bench.excluded |= {id_of(plain), id_of(tenfold)}
    with large_dataset.large_database(bench.engine, size, id_of(tenfold)):
        pairs, active = list[Samples](), "small"
        for repeat in range(repeats):
            # The active database comes first, which saves an exchange.
            pair = _samples(bench, active, seconds, plain, tenfold, repeat)
            active = _other(active)
            with step(f"Putting the {active} database in place"):
                large_dataset.swap(bench.engine)
            pairs.append(pair | _samples(bench, active, seconds, plain, tenfold, repeat))
        return pairs


def _other(database: str) -> str:
    return "grown" if database == "small" else "small"


def _samples(
    bench: Bench, database: str, seconds: int, plain: str, tenfold: str, repeat: int
) -> dict[str, Sample]:
    """Return the measurements with that database."""

    def detail(path: str) -> Sample:
        bench.paths["detail"] = path
        return bench.sample(_DETAIL, seconds)

    with step(f"Measuring with the {database} database, {repeat + 1}"):
        once = detail(plain)
        samples = {f"detail {database}": once}
        if database == "grown":
            samples |= {"once": once, "tenfold": detail(tenfold)}
        samples[f"booking {database}"] = bench.sample(_BOOKING, seconds)
    return samples
