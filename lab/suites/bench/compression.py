"""Is a page compressed once for each version, or for each request? Counted, not believed."""

from dataclasses import replace

import httpx

from lab.errors import LabError
from lab.stack.inspect import read_counters
from lab.suites.bench import free_slots
from lab.suites.bench.rows import Row
from lab.suites.bench.sample import Verdict, against
from lab.suites.bench.variants import Bench

_WHAT = "compressions of one new version"


def compressions(bench: Bench, row: Row, seconds: float) -> Verdict:
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
    return replace(against_limit([missed]), why=why)


def against_limit(found: list[float]) -> Verdict:
    """The compressions found, against the one that a version needs."""
    return against(_WHAT, 1, found, at_most=True)


def _book(bench: Bench) -> None:
    """One booking in the hotel whose page is loaded."""
    hotel = bench.hotel
    slots = free_slots.free_slots(bench.engine, hotel)
    suite, customers = next(iter(slots.suites.items()))
    first = slots.first_night
    wish = {"suite": suite, "customers": customers, "check_in": str(first)}
    wish["check_out"] = str(first + free_slots.ONE_NIGHT)
    try:
        answer = httpx.post(f"{bench.base.server_url}/api/booking/", json=wish, timeout=60)
    except httpx.HTTPError as error:
        raise LabError(f"A booking was not answered: {error}") from error
    if answer.status_code != httpx.codes.CREATED:
        raise LabError(f"A booking was answered {answer.status_code}: {answer.text[:200]}")
