"""The steps of `lab bench` around its rows: stack, order and document."""

import subprocess
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import httpx

from load_lab.bench import rows, start
from load_lab.bench.profiles import profile_variant
from load_lab.bench.rows import Row, Variant
from load_lab.bench.sample import Sample, Samples, Verdict, compare, evaluate
from load_lab.bench.variants import Bench
from load_lab.console import Progress
from load_lab.errors import Interrupted, LabError
from load_lab.machine.busy_loop import Busy
from load_lab.profile.recorder import check_permission, find_server
from load_lab.results.arms import alternate
from load_lab.results.provenance import facts, store_result
from load_lab.stack.engine import Engine, require_processes
from load_lab.stack.exclusive import exclusive_use, prepare
from load_lab.stack.native.program_paths import require, version_of
from load_lab.stack.reported import read_counters
from load_lab.targets.reference.app import at_entry, reported_facts
from load_lab.targets.reference.bookings import ONE_NIGHT, free_slots

_REPEATS, _SECONDS = 5, 5
_CHECK_REPEATS, _CHECK_SECONDS = 2, 2
# What `lab bench` does that only the native engine allows.
NEEDS_PROCESSES = "writes Nginx's files and pins what it starts"
# Time for settings and warm-up before each measurement.
_AROUND_SECONDS = 4
# A start takes seconds, so it is repeated less often.
_MAX_STARTS = 3
_START_SECONDS = 60
_COMPRESSIONS = "compressions of one new version"


@dataclass(frozen=True)
class Options:
    """The rows, repeats and seconds of a measurement, and whether the floors are the limits."""

    names: list[str]
    repeats: int
    seconds: int
    check: bool
    profile: bool = False


def resolve_options(
    names: list[str],
    *,
    repeats: int | None,
    seconds: int | None,
    check: bool,
    profile: bool = False,
) -> Options:
    """Return the options, with defaults for those that are not given.

    Raises:
        UsageError: a row is unknown.
    """
    defaults = (_CHECK_REPEATS, _CHECK_SECONDS) if check else (_REPEATS, _SECONDS)
    selection = rows.select_rows(names, check=check)
    return Options(selection, repeats or defaults[0], seconds or defaults[1], check, profile)


def run(engine: Engine, options: Options) -> dict[str, Any]:
    """Measure the rows on the running stack, store the document, and return it.

    Raises:
        UsageError: the engine is not native.
        LabError: the stack failed.
        Interrupted: the user pressed Ctrl-C. The finished rows are stored.
    """
    require_processes(engine, "bench", NEEDS_PROCESSES)
    head = {name: value for name, value in asdict(options).items() if name != "names"}
    with exclusive_use(engine) as stack:
        if options.profile:
            check_permission(find_server(at_entry(engine, "nginx")))
        prepare(engine, stack)
        with facts(
            engine, stack.base, reported_facts(engine, stack.base), versions()
        ) as provenance:
            documents = _until_interrupted(_measure_rows(Bench(engine, stack.base), options))
    stored = store_result("bench", {**provenance, **head, "rows": documents})
    if missing := options.names[len(documents) :]:
        raise Interrupted(
            f"Interrupted. Stored: {stored['files']['result']}. Not measured: {', '.join(missing)}"
        )
    return stored


def _until_interrupted(rows: Iterator[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows that were measured before Ctrl-C, if there are any."""
    documents: list[dict[str, Any]] = []
    try:
        # One by one, so that an interrupt loses only the row that it ends.
        for document in rows:
            documents.append(document)
    except (Interrupted, KeyboardInterrupt):
        if not documents:
            raise
    return documents


def is_reached(document: dict[str, Any]) -> bool:
    """Return whether every value of every row reaches its limit."""
    return all(
        verdict["outcome"] == "reached" for row in document["rows"] for verdict in row["figures"]
    )


def _measure_rows(bench: Bench, options: Options) -> Iterator[dict[str, Any]]:
    with Progress(_estimate_seconds(options)) as progress:
        for name in options.names:
            if name == rows.START:
                progress.begin(name, _START_SECONDS)
                repeats = min(options.repeats, _MAX_STARTS)
                measure_start = partial(start.start_verdict, bench.base, repeats)
                verdict = _verdict_or_failure(measure_start, start.compare_with_limit)
                yield row_document(name, rows.START_PATH, [verdict], [])
            else:
                yield _row(bench, rows.row(name), options, progress)


def _row(bench: Bench, row: Row, options: Options, progress: Progress) -> dict[str, Any]:
    """Measure one row. An error fails only this row."""

    def measure_once(variant: Variant, repeat: int) -> Sample:
        label = f"{row.name} {variant.name} {repeat + 1}/{options.repeats}"
        seconds = options.seconds * variant.duration_factor
        progress.begin(label, seconds + _AROUND_SECONDS)
        return _sample(bench, variant, seconds)

    samples: list[Samples] = []
    profiles: list[dict[str, Any]] = []
    try:
        with bench.prepare_row(row):
            samples = pairs(row, options.repeats, measure_once)
            verdicts = [evaluate(target, samples, check=options.check) for target in row.targets]
            if row.compressed_once:
                count = partial(count_compressions, bench, row, options.seconds)
                verdicts.append(_verdict_or_failure(count, evaluate_compressions))
            profiles = list(_profile_row(bench, row, options, progress))
    except Interrupted:
        raise
    except LabError as error:
        verdicts = [
            _failed_verdict(evaluate(target, [], check=options.check), error)
            for target in row.targets
        ]
    return row_document(row.name, row.path, verdicts, samples) | {"profiles": profiles}


def _profile_row(
    bench: Bench, row: Row, options: Options, progress: Progress
) -> Iterator[dict[str, Any]]:
    """Measure each variant once more with py-spy, if profiles are enabled."""
    for variant in row.variants if options.profile else ():
        seconds = options.seconds * variant.duration_factor
        progress.begin(f"{row.name} {variant.name} profile", seconds + _AROUND_SECONDS)
        yield asdict(profile_variant(bench, row, variant, seconds))


def _verdict_or_failure(
    measure: Callable[[], Verdict], evaluate_samples: Callable[[list[float]], Verdict]
) -> Verdict:
    """Return the verdict of a value without samples. An error fails only this value."""
    try:
        return measure()
    except Interrupted:
        raise
    except LabError as error:
        return _failed_verdict(evaluate_samples([]), error)


def _sample(bench: Bench, variant: Variant, seconds: int) -> Sample:
    """Measure a variant. An error fails only the variant's values, not the rest of the row."""
    try:
        return bench.sample(variant, seconds)
    except Interrupted:
        raise
    except (LabError, subprocess.TimeoutExpired) as error:
        return Sample(0, 0, 0, 0, Busy(0, 0), wrong=str(error))


def _failed_verdict(verdict: Verdict, error: LabError) -> Verdict:
    return replace(verdict, outcome="failed", why=str(error))


def row_document(
    name: str, path: str, verdicts: list[Verdict], samples: list[Samples]
) -> dict[str, Any]:
    """Return a row as it is stored and displayed."""
    return {
        "row": name,
        "path": path,
        "figures": [{**asdict(verdict), "reached": verdict.reached} for verdict in verdicts],
        "pairs": [
            {variant: asdict(sample) for variant, sample in pair.items()} for pair in samples
        ],
    }


def _estimate_seconds(options: Options) -> float:
    """Return the approximate duration of the measurements, in seconds."""
    variants = sum(len(rows.row(name).variants) for name in options.names if name != rows.START)
    start = _START_SECONDS if rows.START in options.names else 0
    repeats = options.repeats + options.profile
    return variants * repeats * (options.seconds + _AROUND_SECONDS) + start


def pairs(row: Row, repeats: int, measure: Callable[[Variant, int], Sample]) -> list[Samples]:
    """Call `measure(variant, repeat)` for every variant, `repeats` times, in alternating order."""
    samples = []
    for repeat in range(repeats):
        order = alternate(row.variants, repeat)
        samples.append({variant.name: measure(variant, repeat) for variant in order})
    return samples


def count_compressions(bench: Bench, row: Row, seconds: float) -> Verdict:
    """Count the compressions of a new version that many clients read compressed.

    A booking between two loads creates the version. A body that Redis does not have is a miss; for
    the compressed body, a miss is a compression.

    Raises:
        LabError: the booking failed, or no client requested the new version.
    """
    variant = row.variant("gzip")
    settings = bench.settings(variant)
    bench.sample(variant, seconds / 2)
    before = read_counters(settings)
    _book(bench)
    sample = bench.sample(variant, seconds / 2)
    counters = read_counters(settings).since(before)
    misses = counters.by_layer().get("redis", {}).get("miss", 0)
    if sample.wrong:
        raise LabError(f"The load of the new version does not count: {sample.wrong}.")
    if not misses:
        raise LabError("A booking made no new version of the page that was loaded.")
    why = f"{sample.requests} compressed answers, {counters.total_builds:.0f} bodies built"
    return replace(evaluate_compressions([misses]), why=why)


def evaluate_compressions(counts: list[float]) -> Verdict:
    """Evaluate the number of compressions: a version needs one."""
    return compare(_COMPRESSIONS, 1, counts, at_most=True)


def _book(bench: Bench) -> None:
    """Make one booking that changes the page which is loaded."""
    slots = free_slots(bench.engine, bench.page_id)
    suite, customers = next(iter(slots.suites.items()))
    first = slots.first_night
    booking = {"suite": suite, "customers": customers, "check_in": str(first)}
    booking["check_out"] = str(first + ONE_NIGHT)
    try:
        response = httpx.post(f"{bench.base.server_url}/api/booking/", json=booking, timeout=60)
    except httpx.HTTPError as error:
        raise LabError(f"A booking was not answered: {error}") from error
    if response.status_code != httpx.codes.CREATED:
        raise LabError(f"A booking was answered {response.status_code}: {response.text[:200]}")


def versions() -> dict[str, str]:
    """Return the version of each generator."""
    return {
        "wrk": version_of([str(require("wrk")), "-v"]),
        "pgbench": version_of([str(require("pgbench")), "--version"]),
    }
