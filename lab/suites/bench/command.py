"""The steps of `lab bench` around its rows: stack, order and document."""

import subprocess
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import httpx

from lab.analysis.provenance import facts, stored
from lab.console import Progress
from lab.errors import Interrupted, LabError, UsageError
from lab.profiling.profile import backend_pid
from lab.profiling.recorder import check_permission
from lab.stack.engine import Engine
from lab.stack.exclusive import borrowed, prepare
from lab.stack.inspect import read_counters
from lab.stack.native.programs import require, version_of
from lab.suites.bench import rows, start
from lab.suites.bench.busy import Busy
from lab.suites.bench.dataset import ONE_NIGHT, free_slots
from lab.suites.bench.profiles import profiled
from lab.suites.bench.rows import Row, Way
from lab.suites.bench.sample import Pair, Sample, Verdict, against, judge
from lab.suites.bench.variants import Bench

_REPEATS, _SECONDS = 5, 5
_CHECK_REPEATS, _CHECK_SECONDS = 2, 2
# Time for settings and warm-up before each measurement.
_AROUND_SECONDS = 4
# A start takes seconds, so it is repeated less often.
_MOST_STARTS = 3
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
    usual = (_CHECK_REPEATS, _CHECK_SECONDS) if check else (_REPEATS, _SECONDS)
    found = rows.chosen(names, check=check)
    return Options(found, repeats or usual[0], seconds or usual[1], check, profile)


def run(engine: Engine, options: Options) -> dict[str, Any]:
    """Measure the rows on the running stack, store the document, and return it.

    Raises:
        UsageError: the engine is not native.
        LabError: the stack failed.
        Interrupted: the user pressed Ctrl-C.
    """
    require_native(engine)
    with borrowed(engine) as stack:
        if options.profile:
            check_permission(backend_pid(engine))
        prepare(engine, stack)
        with facts(engine, stack.base, versions()) as known:
            measured = list(_measured(Bench(engine, stack.base), options))
    head = {name: value for name, value in asdict(options).items() if name != "names"}
    return stored("bench", {**known, **head, "rows": measured})


def require_native(engine: Engine) -> None:
    """Check the engine.

    Raises:
        UsageError: it is not native.
    """
    if engine.name != "native":
        raise UsageError(
            f"`lab bench` measures on the native engine; this one is {engine.name}. Only there can "
            "it reach Nginx's files and pin what it starts. Stop this stack (lab down), then: "
            "LAB_ENGINE=native lab bench"
        )


def is_reached(document: dict[str, Any]) -> bool:
    """Return whether every value of every row reaches its limit."""
    return all(
        figure["outcome"] == "reached" for row in document["rows"] for figure in row["figures"]
    )


def _measured(bench: Bench, options: Options) -> Iterator[dict[str, Any]]:
    with Progress(_expected(options)) as progress:
        for name in options.names:
            if name == rows.START:
                progress.begin(name, _START_SECONDS)
                times = min(options.repeats, _MOST_STARTS)
                timed = partial(start.start_verdict, bench.base, times)
                verdict = _or_failed(timed, start.against_limit)
                yield row_document(name, rows.START_PATH, [verdict], [])
            else:
                yield _row(bench, rows.row(name), options, progress)


def _row(bench: Bench, row: Row, options: Options, progress: Progress) -> dict[str, Any]:
    """Measure one row. An error fails only this row."""

    def once(way: Way, repeat: int) -> Sample:
        label = f"{row.name} {way.name} {repeat + 1}/{options.repeats}"
        seconds = options.seconds * way.longer
        progress.begin(label, seconds + _AROUND_SECONDS)
        return _sample(bench, way, seconds)

    found: list[Pair] = []
    profiles: list[dict[str, Any]] = []
    try:
        with bench.prepared(row):
            found = pairs(row, options.repeats, once)
            verdicts = [judge(target, found, check=options.check) for target in row.targets]
            if row.compressed_once:
                counted = partial(count_compressions, bench, row, options.seconds)
                verdicts.append(_or_failed(counted, judge_compressions))
            profiles = list(_profiled(bench, row, options, progress))
    except Interrupted:
        raise
    except LabError as error:
        verdicts = [_failed(judge(each, [], check=options.check), error) for each in row.targets]
    return row_document(row.name, row.path, verdicts, found) | {"profiles": profiles}


def _profiled(bench: Bench, row: Row, options: Options, progress: Progress) -> Iterator[dict[str, Any]]:
    """Measure each variant once more with py-spy, if profiles are enabled."""
    for way in row.ways if options.profile else ():
        seconds = options.seconds * way.longer
        progress.begin(f"{row.name} {way.name} profile", seconds + _AROUND_SECONDS)
        yield asdict(profiled(bench, row, way, seconds))


def _or_failed(
    measure: Callable[[], Verdict], against_limit: Callable[[list[float]], Verdict]
) -> Verdict:
    """Return the verdict of a value without samples. An error fails only this value."""
    try:
        return measure()
    except Interrupted:
        raise
    except LabError as error:
        return _failed(against_limit([]), error)


def _sample(bench: Bench, way: Way, seconds: int) -> Sample:
    """Measure a variant. An error fails only the variant's values, not the rest of the row."""
    try:
        return bench.sample(way, seconds)
    except Interrupted:
        raise
    except (LabError, subprocess.TimeoutExpired) as error:
        return Sample(0, 0, 0, 0, Busy(0, 0), wrong=str(error))


def _failed(verdict: Verdict, error: LabError) -> Verdict:
    return replace(verdict, outcome="failed", why=str(error))


def row_document(
    name: str, path: str, verdicts: list[Verdict], found: list[Pair]
) -> dict[str, Any]:
    """Return a row as it is stored and displayed."""
    return {
        "row": name,
        "path": path,
        "figures": [{**asdict(each), "reached": each.reached} for each in verdicts],
        "pairs": [{way: asdict(sample) for way, sample in pair.items()} for pair in found],
    }


def _expected(options: Options) -> float:
    """Return the approximate duration of the measurements, in seconds."""
    ways = sum(len(rows.row(name).ways) for name in options.names if name != rows.START)
    start = _START_SECONDS if rows.START in options.names else 0
    times = options.repeats + options.profile
    return ways * times * (options.seconds + _AROUND_SECONDS) + start


def pairs(row: Row, repeats: int, once: Callable[[Way, int], Sample]) -> list[Pair]:
    """Call `once(way, repeat)` for every variant, `repeats` times, in alternating order.

    So drift during a row (the clock, other programs, the disk's cache) favours no variant.
    """
    found = []
    for repeat in range(repeats):
        order = row.ways if repeat % 2 == 0 else row.ways[::-1]
        found.append({way.name: once(way, repeat) for way in order})
    return found


def count_compressions(bench: Bench, row: Row, seconds: float) -> Verdict:
    """Count the compressions of a new version that many clients read compressed.

    A booking between two loads creates the version. A body that Redis does not have is a miss; for
    the compressed body, a miss is a compression.

    Raises:
        LabError: the booking failed, or no client requested the new version.
    """
    way = row.way("gzip")
    settings = bench.settings(way)
    bench.sample(way, seconds / 2)
    before = read_counters(settings)
    _book(bench)
    sample = bench.sample(way, seconds / 2)
    counted = read_counters(settings).since(before)
    missed = counted.by_layer().get("redis", {}).get("miss", 0)
    if sample.wrong:
        raise LabError(f"The load of the new version does not count: {sample.wrong}.")
    if not missed:
        raise LabError("A booking made no new version of the page that was loaded.")
    why = f"{sample.requests} compressed answers, {counted.built:.0f} bodies built"
    return replace(judge_compressions([missed]), why=why)


def judge_compressions(found: list[float]) -> Verdict:
    """Judge the number of compressions: a version needs one."""
    return against(_COMPRESSIONS, 1, found, at_most=True)


def _book(bench: Bench) -> None:
    """Make one booking in the hotel whose page is loaded."""
    hotel = bench.hotel
    slots = free_slots(bench.engine, hotel)
    suite, customers = next(iter(slots.suites.items()))
    first = slots.first_night
    wish = {"suite": suite, "customers": customers, "check_in": str(first)}
    wish["check_out"] = str(first + ONE_NIGHT)
    try:
        answer = httpx.post(f"{bench.base.server_url}/api/booking/", json=wish, timeout=60)
    except httpx.HTTPError as error:
        raise LabError(f"A booking was not answered: {error}") from error
    if answer.status_code != httpx.codes.CREATED:
        raise LabError(f"A booking was answered {answer.status_code}: {answer.text[:200]}")


def versions() -> dict[str, str]:
    """Return the version of each generator."""
    return {
        "wrk": version_of([str(require("wrk")), "-v"]),
        "pgbench": version_of([str(require("pgbench")), "--version"]),
    }
