"""What shows a cause, in words."""

from collections.abc import Iterator

from load_lab.diagnosis import causes
from load_lab.diagnosis.facts import Facts
from load_lab.diagnosis.split import Place, Split


def workers(facts: Facts, split: Split) -> Iterator[str]:
    seen = facts.saturated
    if facts.slots:
        yield (
            f"{split.busy:.1f} of {facts.slots} workers busy, {split.waiting:.0f} requests queued; "
            f"the target's CPUs {seen.cpu.target:.0%} busy"
        )
    elif seen.in_flight is not None:
        yield (
            f"{seen.in_flight:.1f} requests in the server; the target's CPUs "
            f"{seen.cpu.target:.0%} busy"
        )


def headline(name: str, split: Split) -> str:
    if name != causes.SLOTS.name:
        return name
    longest = max(_DOING, key=split.share)
    return f"{name} (they {_DOING[longest]})"


_DOING: dict[Place, str] = {
    "network": "wait for the network to Postgres",
    "redis": "wait for Redis",
    "outside": "wait for another program",
    "sleep": "sleep",
    "postgres sleep": "sleep in Postgres",
    "cpu": "compute, and CPUs are idle",
    "postgres cpu": "wait for Postgres, which computes",
}


def duration(facts: Facts, split: Split, place: Place) -> str:
    """Return how long a request is at a place, of how long."""
    rate = facts.saturated.answered
    if not rate:
        return "for most of its time"
    return (
        f"{split.milliseconds(rate).get(place, 0.0):,.0f} ms of {1000 * split.total / rate:,.0f} ms"
    )


_PLACE_TEXTS: dict[Place, str] = {
    "postgres sleep": "sleeps in Postgres",
    "sleep": "sleeps",
    "clients": "is between the clients and the server",
    "postgres": "is at Postgres, or on the way there,",
    "outside": "waits for other programs",
}


def place_text(facts: Facts, split: Split, place: Place) -> str:
    return f"a request {_PLACE_TEXTS[place]} {duration(facts, split, place)}"


def postgres_text(facts: Facts, split: Split, place: Place, what: str) -> str:
    state, spent = place.removeprefix("postgres "), duration(facts, split, place)
    sessions = facts.saturated.session(state)
    cores = facts.saturated.cpu.services.get("postgres", 0.0)
    return (
        f"{sessions:.1f} sessions of Postgres {what}: {spent} per request; "
        f"Postgres's CPU {cores:.2f} cores"
    )


def working_threads(facts: Facts) -> float:
    """Return the threads that compute, sleep, or wait for another program."""
    threads = facts.saturated.threads
    return sum(threads.get(state, 0.0) for state in ("running", "outside", "sleep"))


def one_thread_text(facts: Facts, split: Split) -> str:
    return (
        f"{working_threads(facts):.1f} threads worked, slept or waited for others at a time, for "
        f"{split.busy:.1f} requests in the server; {split.waiting:.0f} waited in front of it"
    )


def network_text(facts: Facts, split: Split) -> str:
    seen = facts.saturated
    text = f"{duration(facts, split, 'network')} in the network to and from Postgres"
    each = seconds_of_trip(facts, split, "postgres", "network")
    if each is not None:
        trips = seen.sent["postgres"] / seen.answered
        text += f": {trips:.0f} round trips of {1000 * each:,.0f} ms"
    if seen.retransmits >= 1:
        text += f"; {seen.retransmits:.0f} packets a second were lost and sent again"
    return f"{text}; Postgres's CPU {seen.cpu.services.get('postgres', 0.0):.2f} cores"


# Of the requests: what is sent in a period, and what is answered in it, are not the same requests.
_ONE_TRIP = 0.5


def seconds_of_trip(facts: Facts, split: Split, dependency: str, place: Place) -> float | None:
    """Return how long a request is at a place for each round trip to a dependency; None where few
    requests have one.
    """
    seen = facts.saturated
    sent = seen.sent.get(dependency, 0.0)
    if not seen.answered or sent < _ONE_TRIP * seen.answered:
        return None
    return split.places.get(place, 0.0) / sent
