"""What `lab bench` does around its rows: the stack, the order, the document."""

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
# Settings and warm-up before each measurement.
_AROUND_SECONDS = 4
# A start takes seconds, and is repeated less often.
_MOST_STARTS = 3
_START_SECONDS = 60
_COMPRESSIONS = "compressions of one new version"


@dataclass(frozen=True)
class Asked:
    """What to measure, how often, for how long each time, and whether by the floors."""

    names: list[str]
    repeats: int
    seconds: int
    check: bool
    profile: bool = False


def asked(
    names: list[str],
    *,
    repeats: int | None,
    seconds: int | None,
    check: bool,
    profile: bool = False,
) -> Asked:
    """What was asked for, with what is usual where nothing was said.

    Raises:
        UsageError: there is no such row.
    """
    usual = (_CHECK_REPEATS, _CHECK_SECONDS) if check else (_REPEATS, _SECONDS)
    found = rows.chosen(names, check=check)
    return Asked(found, repeats or usual[0], seconds or usual[1], check, profile)


def run(engine: Engine, what: Asked) -> dict[str, Any]:
    """Measure the rows on the running stack, store the document, and return it.

    Raises:
        UsageError: this engine can't.
        LabError: the stack broke.
        Interrupted: someone pressed Ctrl-C.
    """
    require_native(engine)
    with borrowed(engine) as stack:
        if what.profile:
            check_permission(backend_pid(engine))
        prepare(engine, stack)
        with facts(engine, stack.base, versions()) as known:
            measured = list(_measured(Bench(engine, stack.base), what))
    head = {name: value for name, value in asdict(what).items() if name != "names"}
    return stored("bench", {**known, **head, "rows": measured})


def require_native(engine: Engine) -> None:
    """Raises:
    UsageError: it is another engine.
    """
    if engine.name != "native":
        raise UsageError(
            f"`lab bench` measures on the native engine; this one is {engine.name}. Only there can "
            "it reach Nginx's files and pin what it starts. Stop this stack (lab down), then: "
            "LAB_ENGINE=native lab bench"
        )


def is_reached(document: dict[str, Any]) -> bool:
    """Whether every figure of every row is what it has to be."""
    return all(
        figure["outcome"] == "reached" for row in document["rows"] for figure in row["figures"]
    )


def _measured(bench: Bench, what: Asked) -> Iterator[dict[str, Any]]:
    with Progress(_expected(what)) as progress:
        for name in what.names:
            if name == rows.START:
                progress.begin(name, _START_SECONDS)
                times = min(what.repeats, _MOST_STARTS)
                timed = partial(start.start_verdict, bench.base, times)
                verdict = _or_failed(timed, start.against_limit)
                yield row_document(name, rows.START_PATH, [verdict], [])
            else:
                yield _row(bench, rows.row(name), what, progress)


def _row(bench: Bench, row: Row, what: Asked, progress: Progress) -> dict[str, Any]:
    """One row; what breaks in it is the row's, and the others go on."""

    def once(way: Way, repeat: int) -> Sample:
        label = f"{row.name} {way.name} {repeat + 1}/{what.repeats}"
        seconds = what.seconds * way.longer
        progress.begin(label, seconds + _AROUND_SECONDS)
        return _sample(bench, way, seconds)

    found: list[Pair] = []
    profiles: list[dict[str, Any]] = []
    try:
        with bench.prepared(row):
            found = pairs(row, what.repeats, once)
            verdicts = [judge(target, found, check=what.check) for target in row.targets]
            if row.compressed_once:
                counted = partial(count_compressions, bench, row, what.seconds)
                verdicts.append(_or_failed(counted, judge_compressions))
            profiles = list(_profiled(bench, row, what, progress))
    except Interrupted:
        raise
    except LabError as error:
        verdicts = [_failed(judge(each, [], check=what.check), error) for each in row.targets]
    return row_document(row.name, row.path, verdicts, found) | {"profiles": profiles}


def _profiled(bench: Bench, row: Row, what: Asked, progress: Progress) -> Iterator[dict[str, Any]]:
    """One more load of each way, with py-spy looking on, where that is asked for."""
    for way in row.ways if what.profile else ():
        seconds = what.seconds * way.longer
        progress.begin(f"{row.name} {way.name} profile", seconds + _AROUND_SECONDS)
        yield asdict(profiled(bench, row, way, seconds))


def _or_failed(
    measure: Callable[[], Verdict], against_limit: Callable[[list[float]], Verdict]
) -> Verdict:
    """A figure that has no samples: what breaks in it is its own."""
    try:
        return measure()
    except Interrupted:
        raise
    except LabError as error:
        return _failed(against_limit([]), error)


def _sample(bench: Bench, way: Way, seconds: int) -> Sample:
    """A way that can't be measured fails its own figures, and not the row's others."""
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
    """A row as it is stored and shown."""
    return {
        "row": name,
        "path": path,
        "figures": [{**asdict(each), "reached": each.reached} for each in verdicts],
        "pairs": [{way: asdict(sample) for way, sample in pair.items()} for pair in found],
    }


def _expected(what: Asked) -> float:
    """Seconds that the measurements take, about."""
    ways = sum(len(rows.row(name).ways) for name in what.names if name != rows.START)
    start = _START_SECONDS if rows.START in what.names else 0
    times = what.repeats + what.profile
    return ways * times * (what.seconds + _AROUND_SECONDS) + start


def pairs(row: Row, repeats: int, once: Callable[[Way, int], Sample]) -> list[Pair]:
    """`once(way, repeat)` of every way, `repeats` times, each in the opposite order of the last.

    So what drifts while a row is measured (the clock, the neighbours, what the disk has kept) is as
    often for a way as against it.
    """
    found = []
    for repeat in range(repeats):
        order = row.ways if repeat % 2 == 0 else row.ways[::-1]
        found.append({way.name: once(way, repeat) for way in order})
    return found


def count_compressions(bench: Bench, row: Row, seconds: float) -> Verdict:
    """What the backend's counters say of a new version that is read by many, compressed.

    A booking makes the version, between two loads. A body that Redis does not have is a miss; of
    the compressed one, a compression.

    Raises:
        LabError: the booking failed, or nobody asked for the new version.
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
    """The compressions found, against the one that a version needs."""
    return against(_COMPRESSIONS, 1, found, at_most=True)


def _book(bench: Bench) -> None:
    """One booking in the hotel whose page is loaded."""
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
    """The version of each generator."""
    return {
        "wrk": version_of([str(require("wrk")), "-v"]),
        "pgbench": version_of([str(require("pgbench")), "--version"]),
    }
