"""Rank causes by where requests spend their time in the server, the innermost place first."""

from collections.abc import Iterator

from load_lab.diagnosis import causes
from load_lab.diagnosis.causes import Cause
from load_lab.diagnosis.evidence import (
    duration,
    network_text,
    one_thread_text,
    place_text,
    postgres_text,
    seconds_of_trip,
    working_threads,
)
from load_lab.diagnosis.facts import Facts
from load_lab.diagnosis.period import FULL_CPU, FULL_SLOTS
from load_lab.diagnosis.split import Place, Split
from load_lab.machine.observation import LITTLE_WAIT, POSTGRES
from load_lab.results.bottleneck import Candidate
from load_lab.stack.measuring_services import side_of

# Of one process's CPU.
_FULL_PROCESS, _BUSY_PROCESS = 0.85, 0.5
# Of a pool: between two requests a connection is idle for a moment. And of the requests that wait
# in the server: so many threads at a lock show that it is one.
_POOL_IN_USE, _LOCKED = 0.7, 0.5
# From this share of the requests on, what waits in front of a place is behind it.
INNERMOST = 0.3
# A round trip to a Redis that is not slow takes less; seconds.
_SLOW_REDIS = 0.005
# Sessions that have a CPU for less of the time that they compute wait for one; and the server's
# threads, if they wait for longer than this share of theirs.
_COMPUTING, _WAITS_FOR_CPU = 0.8, 0.5
# By so much, the number of threads that work may differ from that of the processes.
_ALL_THE_TIME = 0.15
# Of a request's time: less is not worth a line.
_LEAST_SHARE = 0.02
_OWN_SERVICES = ("backend", "backend-beside", "target")
_DEPENDENCIES = (POSTGRES, "redis")
LOCKS: tuple[Place, ...] = ("postgres lock", "postgres table", "postgres advisory", "postgres wal")
# Places behind the server's own queues.
_INNER: tuple[Place, ...] = (*LOCKS, "postgres io", "postgres internal", "redis")


def ranking(facts: Facts, split: Split) -> list[Candidate]:
    """Return the causes by their share of the time of a request, the largest first. Worker slots
    may be behind several places; the largest one's evidence counts.
    """
    found = sorted(
        (*_computing(facts, split), *_waiting(facts, split)), key=lambda entry: -entry[1]
    )
    shares, texts = dict[str, float](), dict[str, str]()
    for cause, share, text in found:
        shares[cause.name] = shares.get(cause.name, 0.0) + share
        texts.setdefault(cause.name, text)
    return [
        Candidate(name=name, share=round(min(share, 1.0), 3), evidence=texts[name])
        for name, share in sorted(shares.items(), key=lambda item: -item[1])
        if share > _LEAST_SHARE
    ]


def _computing(facts: Facts, split: Split) -> Iterator[tuple[Cause, float, str]]:
    """Yield who computes: full CPUs belong to the service that uses most of them."""
    seen = facts.saturated
    cpu = split.share("cpu", "cpu wait", "postgres cpu")
    used = f"the target's CPUs were {seen.cpu.target:.0%} busy"
    if seen.has_full_cpu and _is_waited_for(facts, split):
        name, cause, cores = _greatest_user(facts)
        behind = _queued_behind_cpu(facts, split) + split.share(*waiting_for(name))
        yield cause, cpu + behind, f"{used}; it used {cores:.2f} cores"
        return
    if are_processes_full(facts):
        yield (
            causes.GIL,
            split.share("cpu", "cpu wait", "process"),
            f"{seen.server_cpu:.2f} CPUs used by {facts.processes} process(es), each of which can "
            f"use one; threads waited {seen.waited:.2f} s per second for a CPU; {used}",
        )
        return
    # Where nobody waits for a CPU, more workers would compute more at once.
    text = postgres_text(facts, split, "postgres cpu", "compute")
    cores = seen.cpu.services.get("postgres", 0.0)
    queues = cores < _COMPUTING * seen.session("cpu")
    postgres = causes.POSTGRES_CPU if queues else _slots_or(facts, split, causes.POSTGRES_CPU)
    yield postgres, split.share("postgres cpu"), text
    backend = f"{used}; a request computes {duration(facts, split, 'cpu')}"
    waits = seen.waited >= _WAITS_FOR_CPU * seen.server_cpu
    cause = causes.BACKEND_CPU if waits else _slots_or(facts, split, causes.UNSEEN)
    yield cause, split.share("cpu", "cpu wait"), backend


def _is_waited_for(facts: Facts, split: Split) -> bool:
    """Return whether requests wait for a CPU, or only use one: 95 % busy may be enough."""
    # All that Nginx does is for requests.
    is_nginx = _greatest_user(facts)[0] == "nginx"
    return wait_for_cpu(facts, split) or is_nginx or _is_own(facts)


def wait_for_cpu(facts: Facts, split: Split) -> bool:
    waiting = facts.saturated.waited + split.places.get("postgres cpu", 0.0)
    computing = split.share("cpu", "cpu wait", "postgres cpu")
    return waiting > LITTLE_WAIT or computing > 0.5


def _is_own(facts: Facts) -> bool:
    """Return whether the server itself uses most of the CPU time of the target's services, and of
    other programs: then what waits inside it waits for a CPU.
    """
    cpu = facts.saturated.cpu
    name, _, own = _greatest_user(facts)
    services = sum(n for service, n in cpu.services.items() if side_of(service) == "target")
    return not name and own >= 0.5 * max(own, cpu.others + services)


def are_processes_full(facts: Facts) -> bool:
    """Return whether each process uses a whole CPU, or waits for one most of the other time, while
    CPUs are idle: its threads hand the lock to each other, and each has to be woken.
    """
    seen, count = facts.saturated, facts.processes
    return (
        count is not None
        and seen.server_cpu >= _BUSY_PROCESS * count
        and seen.server_cpu + seen.waited >= _FULL_PROCESS * count
        and not seen.has_full_cpu
    )


def _queued_behind_cpu(facts: Facts, split: Split) -> float:
    """Return the share of the requests that wait in an event loop, or for the GIL, for a CPU."""
    is_own = facts.saturated.busiest >= _FULL_PROCESS or _is_own(facts)
    return split.share("process") if is_own else 0.0


def _greatest_user(facts: Facts) -> tuple[str, Cause, float]:
    """Return the service that uses most CPU time: its name, cause and cores."""
    services = facts.saturated.cpu.services
    own = sum(services.get(name, 0.0) for name in _OWN_SERVICES) or facts.saturated.server_cpu
    users = {
        name: cores
        for name, cores in services.items()
        if name not in _OWN_SERVICES and side_of(name) == "target"
    }
    name = max(users, key=lambda one: users[one], default="")
    if not name or own >= users[name]:
        return "", causes.BACKEND_CPU, own
    return name, _CPU_CAUSES.get(name, causes.cpu_of(name)), users[name]


def waiting_for(service: str) -> tuple[Place, ...]:
    """Return where requests are that wait for a service."""
    known: dict[str, tuple[Place, ...]] = {
        "": (),
        "cache": ("clients",),
        # Requests that are nowhere else.
        "nginx": ("clients", "process"),
        "postgres": ("postgres", "network"),
        "redis": ("redis",),
        "toxiproxy": ("network",),
    }
    return known.get(service, ("outside",))


_CPU_CAUSES = {
    "postgres": causes.POSTGRES_CPU,
    "redis": causes.REDIS_CPU,
    "nginx": causes.NGINX_CPU,
}


def _waiting(facts: Facts, split: Split) -> Iterator[tuple[Cause, float, str]]:
    """Yield what requests wait for. Where nothing full is behind it, the worker slots are."""
    inside: dict[Place, tuple[Cause, str]] = {
        "postgres lock": (causes.ROW_LOCKS, "wait for a row's lock"),
        "postgres table": (causes.TABLE_LOCKS, "wait for a table's lock"),
        "postgres advisory": (causes.ADVISORY_LOCKS, "wait for an advisory lock"),
        "postgres wal": (causes.WAL, "wait for a flush of the log"),
        "postgres io": (causes.POSTGRES_IO, "wait for the disk"),
        "postgres internal": (causes.POSTGRES_INTERNAL, "wait for each other"),
    }
    for place, (cause, what) in inside.items():
        yield cause, split.share(place), postgres_text(facts, split, place, what)
    yield _redis_cause(facts, split)
    yield causes.CLIENTS, split.share("clients"), place_text(facts, split, "clients")
    elsewhere: dict[Place, tuple[Cause, str]] = {
        "network": (causes.NETWORK, network_text(facts, split)),
        "postgres sleep": (causes.OUTSIDE, place_text(facts, split, "postgres sleep")),
        "sleep": (causes.OUTSIDE, place_text(facts, split, "sleep")),
        "postgres": (causes.POSTGRES, place_text(facts, split, "postgres")),
        "outside": (causes.OUTSIDE, place_text(facts, split, "outside")),
    }
    for place, (cause, text) in elsewhere.items():
        # What is inside Postgres may be full itself.
        may_be_slots = place != "postgres"
        named = _slots_or(facts, split, cause) if may_be_slots else cause
        if place == "outside" and _may_be_clients(facts, split):
            named = causes.UNSEEN
        yield named, split.share(place), text
    yield _process_cause(facts, split)


def _may_be_clients(facts: Facts, split: Split) -> bool:
    """Return whether threads wait for something that no connection shows: for the next request of
    their client perhaps, where each has a thread.
    """
    known = sum(n for name, n in facts.saturated.awaited.items() if name not in _DEPENDENCIES)
    return facts.slots is None and known < 0.5 * split.places.get("outside", 0.0)


def _redis_cause(facts: Facts, split: Split) -> tuple[Cause, float, str]:
    cores = facts.saturated.cpu.services.get("redis", 0.0)
    text = f"a request waits for Redis {duration(facts, split, 'redis')}; its CPU {cores:.0%}"
    trip = seconds_of_trip(facts, split, "redis", "redis")
    if cores > FULL_CPU:
        cause = causes.REDIS_CPU
    elif trip is not None and trip > _SLOW_REDIS:
        cause, text = causes.REDIS, f"{text}; {1000 * trip:,.0f} ms for each round trip"
    else:
        cause = _slots_or(facts, split, causes.REDIS)
    return cause, split.share("redis"), text


def _slots_or(facts: Facts, split: Split, cause: Cause) -> Cause:
    """Return the worker slots if they are full: with more of them, waiting would not matter."""
    if _is_one_thread_each(facts, split):
        return causes.EVENT_LOOP
    is_full = facts.slots is not None and split.busy >= FULL_SLOTS * facts.slots
    return causes.SLOTS if is_full else cause


def _are_locked(facts: Facts, split: Split) -> bool:
    """Return whether requests that wait inside the server have a thread at a lock; idle threads
    look the same.
    """
    threads = facts.saturated.threads
    return threads.get("lock", 0.0) >= _LOCKED * split.places.get("process", 0.0)


def _is_one_thread_each(facts: Facts, split: Split) -> bool:
    """Return whether requests wait for the one thread of each process, which works all the time: no
    thread waits for requests. A server that is not known has as many processes as such threads.
    """
    if (facts.slots and facts.processes) or split.share("process") < INNERMOST:
        return False
    loops, working = facts.saturated.threads.get("loop", 0.0), working_threads(facts)
    count = facts.processes or round(working)
    is_busy = count >= 1 and abs(working - count) <= _ALL_THE_TIME * count
    return is_busy and (loops <= _ALL_THE_TIME * count or not _are_locked(facts, split))


def _process_cause(facts: Facts, split: Split) -> tuple[Cause, float, str]:
    """Return the cause of requests that wait inside the server's processes."""
    share, text = split.share("process"), f"{duration(facts, split, 'process')} inside the server"
    seen = facts.saturated
    if are_processes_full(facts) or (
        seen.has_full_cpu
        and (seen.busiest >= _FULL_PROCESS or _is_own(facts) or _greatest_user(facts)[0] == "nginx")
    ):
        # Counted with what computes.
        return causes.PROCESS_LOCK, 0.0, ""
    inner = (*_INNER, "postgres cpu") if seen.has_full_cpu else _INNER
    if max(map(split.share, inner)) >= INNERMOST:
        # They queue behind those that are there.
        return causes.PROCESS_LOCK, 0.0, ""
    used = seen.all_sessions - seen.session("idle")
    if facts.pool and used >= _POOL_IN_USE * facts.pool:
        return causes.POOL, share, f"{used:.1f} of {facts.pool} connections were in use; {text}"
    if _is_one_thread_each(facts, split):
        return causes.EVENT_LOOP, share, one_thread_text(facts, split)
    if _are_locked(facts, split):
        return causes.PROCESS_LOCK, share, text
    return causes.UNSEEN, share, f"{text}, in an event loop or where no thread is seen"
