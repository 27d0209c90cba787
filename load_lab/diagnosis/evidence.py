"""What shows a cause, in words. Each takes the facts of a run, and a place of requests."""

from collections.abc import Callable, Iterator, Mapping

from load_lab.diagnosis import causes, conditions
from load_lab.diagnosis.causes import Cause
from load_lab.diagnosis.facts import Facts
from load_lab.diagnosis.split import Place
from load_lab.machine.control_groups import MUCH_THROTTLED
from load_lab.machine.observation import POSTGRES, SERVER

Text = Callable[[Facts, Place], str]


def workers(facts: Facts) -> Iterator[str]:
    seen, split = facts.saturated, facts.split
    if facts.all_slots:
        yield (
            f"{split.busy:.1f} of {facts.all_slots} workers busy, {split.waiting:.0f} requests "
            f"queued; the target's CPUs {seen.cpu.target:.0%} busy"
        )
    elif seen.in_flight is not None:
        yield (
            f"{seen.in_flight:.1f} requests in the server; the target's CPUs "
            f"{seen.cpu.target:.0%} busy"
        )


def headline(name: str, facts: Facts) -> str:
    if name != causes.SLOTS.name:
        return name
    longest = max(_DOING, key=facts.split.share)
    return f"{name} (they {_DOING[longest]})"


_DOING: dict[Place, str] = {
    "network": "wait for the network to Postgres",
    "redis": "wait for Redis",
    "outside": "wait for another program",
    "sleep": "sleep",
    "disk": "wait for the disk",
    "other": "wait in the kernel",
    "postgres sleep": "sleep in Postgres",
    "cpu": "compute, and CPUs are idle",
    "postgres cpu": "wait for Postgres, which computes",
}


def duration(facts: Facts, *places: Place) -> str:
    """Return how long a request is at places, of how long."""
    rate, split = facts.saturated.answered, facts.split
    if not rate:
        return "for most of its time"
    spent = sum(split.milliseconds(rate).get(place, 0.0) for place in places)
    return f"{spent:,.0f} ms of {1000 * split.total / rate:,.0f} ms"


_PLACE_TEXTS: dict[Place, str] = {
    "cpu": "computes",
    "cpu wait": "waits for a CPU",
    "postgres cpu": "waits for Postgres, which computes,",
    "postgres sleep": "sleeps in Postgres",
    "sleep": "sleeps",
    "disk": "waits for the disk",
    "other": "waits in a call of the kernel",
    "clients": "is between the clients and the server",
    "postgres": "is at Postgres, or on the way there,",
}


def at_place(facts: Facts, place: Place) -> str:
    special = _SPECIAL.get(place)
    if special:
        return special(facts, place)
    return f"a request {_PLACE_TEXTS[place]} {duration(facts, place)}"


def _outside(facts: Facts, place: Place) -> str:
    others = {n: v for n, v in facts.saturated.awaited.items() if n not in (POSTGRES, "redis")}
    text = f"a request waits for {_longest(others, 'other programs')} {duration(facts, place)}"
    return f"{text}; {served(facts)}" if conditions.is_contended(facts) else text


def _file(facts: Facts, place: Place) -> str:
    name = _longest(facts.saturated.files, "a file")
    return f"a request waits for a lock of {name} {duration(facts, place)}"


def _longest(names: Mapping[str, float], unknown: str) -> str:
    return max(names, key=lambda name: names[name], default="") or unknown


def _computes(facts: Facts, _place: Place) -> str:
    return f"{_used(facts)}; a request computes {duration(facts, 'cpu')}"


def _used(facts: Facts) -> str:
    return f"the target's CPUs were {facts.saturated.cpu.target:.0%} busy"


def full_cpu(facts: Facts, _place: Place) -> str:
    return f"{_used(facts)}; it used {conditions.greatest_user(facts)[1]:.2f} cores"


def full_processes(facts: Facts, _place: Place) -> str:
    seen = facts.saturated
    return (
        f"{seen.server_cpu:.2f} CPUs used by {facts.processes} process(es), each of which can "
        f"use one; threads waited {seen.waited:.2f} s per second for a CPU; {_used(facts)}"
    )


def sessions(what: str) -> Text:
    """Return the text of a place of Postgres's sessions."""

    def text(facts: Facts, place: Place) -> str:
        state, spent = place.removeprefix("postgres "), duration(facts, place)
        return (
            f"{facts.saturated.session(state):.1f} sessions of Postgres {what}: {spent} per "
            f"request; {_postgres_cpu(facts)}"
        )

    return text


def _postgres_cpu(facts: Facts) -> str:
    return f"Postgres's CPU {facts.saturated.cpu.services.get('postgres', 0.0):.2f} cores"


def one_thread(facts: Facts, _place: Place) -> str:
    seen = facts.saturated
    return (
        f"{seen.workers:.1f} threads of {seen.working:.1f} processes worked, slept or waited for "
        f"others all the time, for {seen.in_flight or 0.0:.1f} requests in the server"
    )


def lock(facts: Facts, _place: Place) -> str:
    waiting = f"{facts.saturated.thread('lock'):.1f} threads wait for a lock"
    text = f"{waiting}: {_inside(facts, 'process')}"
    return f"{text}; {served(facts)}" if conditions.is_contended(facts) else text


def _inside(facts: Facts, place: Place) -> str:
    return f"{duration(facts, place)} inside the server"


def served(facts: Facts) -> str:
    """Return how many requests are served at once."""
    count, alone = conditions.at_once(facts) or 0.0, 1000 * (facts.alone or 0.0)
    return (
        f"{count:.1f} requests are served at once: {facts.saturated.answered:.1f}/s × "
        f"{alone:,.0f} ms that one takes without a queue"
    )


def serial(facts: Facts, place: Place) -> str:
    return f"{served(facts)}; {at_place(facts, place)}"


def locked_file(facts: Facts, place: Place) -> str:
    name = conditions.locked_file(facts)
    if not name:
        return _file(facts, "file")
    share = facts.saturated.locked[name]
    return f"{name} was locked for {share:.0%} of the time; {serial(facts, place)}"


def unseen(facts: Facts, place: Place) -> str:
    text = f"{_inside(facts, place)}, in an event loop or where no thread is seen"
    return f"{text}; {served(facts)}" if conditions.is_contended(facts) else text


def pool(facts: Facts, place: Place) -> str:
    used = facts.saturated.all_sessions - facts.saturated.session("idle")
    return f"{used:.1f} of {facts.pool} connections were in use; {_inside(facts, place)}"


def network(facts: Facts, _place: Place) -> str:
    seen = facts.saturated
    text = f"{duration(facts, 'network')} in the network to and from Postgres"
    each = conditions.seconds_of_trip(facts, "postgres", "network")
    if each is not None:
        trips = seen.sent["postgres"] / seen.answered
        text += f": {trips:.0f} round trips of {1000 * each:,.0f} ms"
    if seen.retransmits >= 1:
        text += f"; {seen.retransmits:.0f} packets a second were lost and sent again"
    return f"{text}; {_postgres_cpu(facts)}"


def redis(facts: Facts, place: Place) -> str:
    cores = facts.saturated.cpu.services.get("redis", 0.0)
    text = f"a request waits for Redis {duration(facts, place)}; its CPU {cores:.0%}"
    trip = conditions.seconds_of_trip(facts, "redis", "redis")
    is_slow = conditions.has_slow_redis(facts)
    return f"{text}; {1000 * trip:,.0f} ms for each round trip" if trip and is_slow else text


def nginx(facts: Facts, place: Place) -> str:
    return (
        f"{at_place(facts, place)}; Nginx's CPU {conditions.nginx_cores(facts.saturated):.2f} cores"
    )


_SPECIAL: dict[Place, Text] = {
    "cpu": _computes,
    "cpu wait": _computes,
    "postgres cpu": sessions("compute"),
    "network": network,
    "redis": redis,
    "outside": _outside,
    "file": _file,
    "process": _inside,
}


# Of a run as a whole.


def slow_alone(facts: Facts) -> str:
    return f"before any queue, p95 was {_ms(facts.first_p95)} > {_ms(facts.p95_limit)}"


def slow_on_the_way(facts: Facts) -> str:
    early = facts.early
    is_answered = early is not None and early.answered
    inside = _ms((early.in_server or 0.0) / early.answered) if early and is_answered else "less"
    return f"{slow_alone(facts)}; in the server a request takes {inside}"


def _ms(seconds: float | None) -> str:
    return f"{1000 * (seconds or 0.0):,.0f} ms"


def generator(facts: Facts) -> str:
    cpu = facts.saturated.cpu
    text = f"its CPUs were {cpu.load:.0%} busy"
    if cpu.throttled > MUCH_THROTTLED:
        text += f", and a CPU quota stopped it for {cpu.throttled:.2f} s of each second"
    return text


def others(facts: Facts) -> str:
    cpu = facts.saturated.cpu
    return (
        f"other programs used {cpu.taken:.0%} of the target's CPUs, and {cpu.others:.1f} CPUs in "
        "all"
    )


_TITLES = {SERVER: "the server", "nginx": "Nginx", "postgres": "Postgres", "redis": "Redis"}


def quota_of(service: str) -> Cause:
    is_server = service == SERVER
    return causes.QUOTA if is_server else causes.quota_of(_TITLES.get(service, service))


def quota(facts: Facts) -> str:
    service = conditions.most_throttled(facts)
    title, stopped = _TITLES.get(service, service), facts.saturated.throttled[service]
    return f"it stopped {title} for {stopped:.2f} s of each second"


def killed(facts: Facts) -> str:
    title = _TITLES.get(conditions.killed(facts), conditions.killed(facts))
    return f"the kernel killed processes of {title} for lack of memory"


def open_files(facts: Facts) -> str:
    return f"its log has “Too many open files” {facts.rejections['files']:,} times"


def virtual_users(facts: Facts) -> str:
    seen = facts.saturated
    return (
        f"{seen.dropped:.1f} dropped iterations per second, while the server had "
        f"{seen.in_flight:.1f} requests in flight"
    )


def refused(facts: Facts, reason: str) -> str:
    count = facts.rejections[reason]
    return f"it refused {count:,} requests; {facts.failed:,} failed"


def connections(facts: Facts) -> str:
    return (
        f"{facts.saturated.most_sessions:.0f} of {facts.max_connections} connections were open; "
        f"{conditions.RESERVED} are reserved"
    )
