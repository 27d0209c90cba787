"""Name what limits a target, with the evidence; or say that it is not clear.

The order: what makes the run void; errors, by who refused; then the place where requests spend most
of their time in the server, the innermost first: full workers and a full accept queue are behind
every other cause, so they show that there is one, and not which.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from lab.analysis.bottleneck import causes
from lab.analysis.bottleneck.causes import Candidate, Cause
from lab.analysis.bottleneck.evidence import (
    duration,
    headline,
    network_text,
    place_text,
    postgres_text,
    seconds_of_trip,
    workers,
)
from lab.analysis.bottleneck.facts import Facts
from lab.analysis.bottleneck.split import Place, Split, split_of
from lab.analysis.bottleneck.stretch import FULL_CPU, FULL_SLOTS, LITTLE_WAIT, Stretch
from lab.host.groups import MUCH_THROTTLED
from lab.stack.sides import side_of
from lab.stack.signals.second import POSTGRES, SERVER

# `likely`: one cause leads clearly. `unclear`: two are close. `unseen`: too little was seen.
Certainty = Literal["likely", "unclear", "unseen"]

_MIN_LOOKS = 20
# By this factor the first cause leads the second; with less, both are named.
_CLOSE = 1.3
# Of one process's CPU.
_FULL_PROCESS, _BUSY_PROCESS = 0.85, 0.5
# Of the target's CPUs by other programs, and steal.
_TAKEN, _MUCH_STEAL = 0.2, 0.15
_MANY_FAULTS = 50
# Of the connections, for superusers: Postgres's own three, and the one that looks.
_RESERVED = 4
# Of the connections, and the failed requests.
_USED_UP, _MANY_REJECTED = 0.9, 0.5
# Of a pool: between two requests a connection is idle for a moment. And of the requests that wait
# in the server: so many threads at a lock show that it is one.
_POOL_IN_USE, _LOCKED = 0.7, 0.5
# From this share of the requests on, what waits in front of a place is behind it.
_INNERMOST = 0.3
# A round trip to a Redis that is not slow takes less; seconds.
_SLOW_REDIS = 0.005
# Sessions that have a CPU for less of the time that they compute wait for one; and the server's
# threads, if they wait for longer than this share of theirs.
_COMPUTING, _WAITS_FOR_CPU = 0.8, 0.5
# In the first seconds a request is alone with fewer in flight.
_ALONE = 1.5
# Of the first requests in flight: with more of them on the way, the server is not what takes long;
# and how many there must be.
_MOST_BETWEEN, _SOME_IN_FLIGHT = 0.5, 0.5
# Of a request's time: less is not worth a line.
_LEAST_SHARE = 0.02
_OWN_SERVICES = ("backend", "backend-beside", "target")


class Diagnosis(BaseModel):
    """What limited a run. `split_ms` has the time of one request by place; `predicted_rate` is what
    the busiest resource would allow, by the load's quiet part.
    """

    model_config = ConfigDict(frozen=True)

    cause: str | None = None
    certainty: Certainty = "unseen"
    headline: str = ""
    evidence: tuple[str, ...] = ()
    remedy: str = ""
    candidates: tuple[Candidate, ...] = ()
    split_ms: dict[str, float] = {}
    predicted_rate: float | None = None
    unseen: tuple[str, ...] = ()


def diagnose(facts: Facts) -> Diagnosis:
    """Return the diagnosis of a run that exceeded a limit."""
    split = split_of(facts.saturated, facts.slots)
    times = split.milliseconds(facts.saturated.answered)
    seen = Diagnosis(
        split_ms={place: round(ms, 1) for place, ms in times.items()},
        predicted_rate=predicted_rate(facts),
        unseen=facts.unseen,
    )
    certain = next(_void(facts), None) or next(_refused(facts), None)
    if certain is None:
        return seen.model_copy(update=_by_split(facts, split))
    cause, evidence = certain
    return seen.model_copy(
        update={
            "cause": cause.name,
            "certainty": "likely",
            "headline": cause.name,
            "evidence": (evidence,),
            "remedy": cause.remedy,
            "candidates": (Candidate(name=cause.name, share=1.0, evidence=evidence),),
        }
    )


def _void(facts: Facts) -> Iterator[tuple[Cause, str]]:
    """Yield what limits a run wherever its requests spend their time."""
    seen = facts.saturated
    yield from _slow_alone(facts)
    if facts.limited_by == "generator_cpu":
        quota = seen.cpu.throttled
        stopped = f", and a CPU quota stopped it for {quota:.2f} s of each second" if quota else ""
        yield causes.GENERATOR, f"its CPUs were {seen.cpu.load:.0%} busy{stopped}"
    if facts.limited_by == "others" or _is_taken_by_others(facts):
        yield (
            causes.OTHERS,
            f"other programs used {seen.cpu.taken:.0%} of the target's CPUs, and "
            f"{seen.cpu.others:.1f} CPUs in all",
        )
    if seen.cpu.steal > _MUCH_STEAL:
        yield causes.STEAL, f"it took {seen.cpu.steal:.0%} of the CPU time"
    yield from _quota(facts)
    yield from _memory(facts)
    if seen.dropped > 0 and _has_free_slots(facts) and _is_in_no_queue(facts):
        yield (
            causes.VIRTUAL_USERS,
            f"{seen.dropped:.1f} dropped iterations per second, while the server had "
            f"{seen.in_flight:.1f} requests in flight",
        )


def _quota(facts: Facts) -> Iterator[tuple[Cause, str]]:
    """Yield whose CPU quota is used up: the server's, or that of a service requests wait for."""
    for service, stopped in _most_first(facts.saturated.throttled):
        if stopped > MUCH_THROTTLED and _is_awaited(facts, service):
            title = _TITLES.get(service, service)
            cause = causes.QUOTA if service == SERVER else causes.quota_of(title)
            yield cause, f"it stopped {title} for {stopped:.2f} s of each second"


def _memory(facts: Facts) -> Iterator[tuple[Cause, str]]:
    for service, killed in _most_first(facts.saturated.killed):
        if killed > 0 and _is_awaited(facts, service):
            title = _TITLES.get(service, service)
            yield causes.MEMORY, f"the kernel killed processes of {title} for lack of memory"
    faults = facts.saturated.faults
    if faults > _MANY_FAULTS:
        yield causes.MEMORY, f"{faults:.0f} pages a second were read from the disk again"


def _most_first(values: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted(values.items(), key=lambda item: -item[1])


def _is_awaited(facts: Facts, service: str) -> bool:
    """Return whether it is the server, or requests wait for it."""
    places = _waiting_for(service)
    if service == POSTGRES:
        places += ("postgres cpu",)
    split = split_of(facts.saturated, facts.slots)
    return service == SERVER or split.share(*places) >= _INNERMOST


_TITLES = {SERVER: "the server", "nginx": "Nginx", "postgres": "Postgres", "redis": "Redis"}


def _slow_alone(facts: Facts) -> Iterator[tuple[Cause, str]]:
    """Yield why requests without a queue exceed the limit."""
    if facts.first_p95 is None or facts.first_p95 <= facts.p95_limit or not _begins_alone(facts):
        return
    text = f"before any queue, p95 was {_ms(facts.first_p95)} > {_ms(facts.p95_limit)}"
    early = facts.early
    if early and _are_between(early, facts.slots):
        inside = _ms((early.in_server or 0.0) / early.answered) if early.answered else "less"
        yield causes.CLIENTS, f"{text}; in the server a request takes {inside}"
    yield causes.ONE_REQUEST, text


def _begins_alone(facts: Facts) -> bool:
    """Return whether the load began without a queue: with few requests, or free workers and CPUs,
    none of which waited for another request.
    """
    begin = facts.begin
    if begin is None or begin.in_flight is None:
        return False
    requests = begin.in_flight + (begin.queued or 0.0)
    has_free = facts.slots is not None and requests < FULL_SLOTS * facts.slots
    split = split_of(begin, facts.slots)
    if split.share(*_LOCKS) >= _INNERMOST:
        # Another program's, or of the few requests that there are.
        return False
    waits = split.share("process", "cpu wait") >= _INNERMOST
    return requests < _ALONE or (has_free and not begin.has_full_cpu and not waits)


def _are_between(early: Stretch, slots: int | None) -> bool:
    """Return whether most of the requests in flight were between the clients and the server."""
    share = split_of(early, slots).share("clients")
    return (early.in_flight or 0.0) > _SOME_IN_FLIGHT and share > _MOST_BETWEEN


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:,.0f} ms"


def _is_taken_by_others(facts: Facts) -> bool:
    """Return whether other programs used full CPUs, and requests waited for one; those of a target
    that is not seen are its own perhaps.
    """
    cpu = facts.saturated.cpu
    if not facts.observed or not facts.saturated.has_full_cpu or cpu.taken <= _TAKEN:
        return False
    # What has a low priority takes only what nobody needs.
    return _wait_for_cpu(facts, split_of(facts.saturated, facts.slots))


def _is_in_no_queue(facts: Facts) -> bool:
    """Return whether requests do not stand in a queue behind which more would stand, too."""
    split = split_of(facts.saturated, facts.slots)
    return split.share("process", *_LOCKS) < _INNERMOST


def _has_free_slots(facts: Facts) -> bool:
    seen = facts.saturated
    if seen.in_flight is None or seen.has_full_cpu:
        return False
    return facts.slots is not None and seen.in_flight < FULL_SLOTS * facts.slots


def _refused(facts: Facts) -> Iterator[tuple[Cause, str]]:
    """Yield who refused requests, if errors exceeded the limit. Shedding is a symptom."""
    if not facts.by_errors:
        return
    reasons = {"limit": causes.REQUEST_LIMIT, "connections": causes.NGINX_CONNECTIONS}
    for reason, cause in reasons.items():
        count = facts.rejections.get(reason, 0)
        if count and count >= _MANY_REJECTED * facts.failed:
            yield cause, f"{count:,} of {facts.failed:,} failed requests were refused by it"
    limit, sessions = facts.max_connections, facts.saturated.most_sessions
    is_shed = _is_shed(facts)
    if limit and not is_shed and sessions >= _USED_UP * (limit - _RESERVED):
        yield (
            causes.MAX_CONNECTIONS,
            f"{sessions:.0f} of {limit} connections were open; {_RESERVED} are reserved",
        )


def _by_split(facts: Facts, split: Split) -> dict[str, Any]:
    """Return the fields of the diagnosis by where requests spend their time."""
    if facts.saturated.looks < _MIN_LOOKS:
        looks = facts.saturated.looks
        return {
            "headline": f"not seen: {looks} samples over the limit, at least {_MIN_LOOKS} needed"
        }
    if not _is_seen(facts):
        return {"headline": causes.UNSEEN.name, "remedy": causes.UNSEEN.remedy}
    if _fails_without_a_queue(facts, split):
        return {
            "headline": "not clear: requests failed, and no part of the target was full",
            "certainty": "unclear",
            "remedy": "see the log of what answered them",
        }
    found = _ranking(facts, split)
    if not found:
        return {"headline": "not clear: no part of the target was full", "certainty": "unclear"}
    if found[0].name == causes.UNSEEN.name:
        return {
            "headline": causes.UNSEEN.name,
            "evidence": (*workers(facts, split), found[0].evidence),
            "remedy": causes.UNSEEN.remedy,
            "candidates": tuple(found),
        }
    first, *others = found
    close = [one for one in others[:1] if first.share < _CLOSE * one.share]
    if not close and _may_lack_users(facts):
        dropped = f"{facts.saturated.dropped:.1f} dropped iterations per second"
        close = [Candidate(name=causes.VIRTUAL_USERS.name, share=first.share, evidence=dropped)]
    evidence = [*workers(facts, split), first.evidence, *(one.evidence for one in close)]
    return {
        "cause": first.name,
        "certainty": "unclear" if close else "likely",
        "headline": f"not clear: {first.name}, or {close[0].name}"
        if close
        else headline(first.name, split),
        "evidence": tuple(evidence),
        "remedy": causes.remedy_of(first.name),
        "candidates": tuple(found),
    }


def _fails_without_a_queue(facts: Facts, split: Split) -> bool:
    """Return whether requests fail, nobody refused them, and nothing is full: by a bug, a token
    that expired, or a limit that is not seen. Shedding has a cause behind it.
    """
    is_full = (
        facts.saturated.has_full_cpu
        or _are_processes_full(facts)
        or split.waiting >= 1
        or (facts.slots is not None and split.busy >= FULL_SLOTS * facts.slots)
    )
    return facts.by_errors and not _is_shed(facts) and not is_full


def _is_shed(facts: Facts) -> bool:
    return facts.rejections.get("shed", 0) >= _MANY_REJECTED * max(facts.failed, 1)


def _may_lack_users(facts: Facts) -> bool:
    """Return whether the load had too few virtual users for a server whose limits are not known."""
    seen = facts.saturated
    return facts.slots is None and seen.dropped > 0 and not seen.has_full_cpu


def _is_seen(facts: Facts) -> bool:
    """Return whether it is known where requests are, or who uses full CPUs."""
    seen = facts.saturated
    states = sum(count for state, count in seen.threads.items() if state != "unknown")
    return seen.in_flight is not None or states > 0 or seen.has_full_cpu


def _ranking(facts: Facts, split: Split) -> list[Candidate]:
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
        behind = _queued_behind_cpu(facts, split) + split.share(*_waiting_for(name))
        yield cause, cpu + behind, f"{used}; it used {cores:.2f} cores"
        return
    if _are_processes_full(facts):
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
    return _wait_for_cpu(facts, split) or is_nginx or _is_own(facts)


def _wait_for_cpu(facts: Facts, split: Split) -> bool:
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


def _are_processes_full(facts: Facts) -> bool:
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


def _waiting_for(service: str) -> tuple[Place, ...]:
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
    is_full = facts.slots is not None and split.busy >= FULL_SLOTS * facts.slots
    return causes.SLOTS if is_full else cause


_LOCKS: tuple[Place, ...] = (
    *("postgres lock", "postgres table", "postgres advisory", "postgres wal"),
)
# Places behind the server's own queues.
_INNER: tuple[Place, ...] = (*_LOCKS, "postgres io", "postgres internal", "redis")
_DEPENDENCIES = (POSTGRES, "redis")


def _process_cause(facts: Facts, split: Split) -> tuple[Cause, float, str]:
    """Return the cause of requests that wait inside the server's processes."""
    share, text = split.share("process"), f"{duration(facts, split, 'process')} inside the server"
    seen = facts.saturated
    if _are_processes_full(facts) or (
        seen.has_full_cpu
        and (seen.busiest >= _FULL_PROCESS or _is_own(facts) or _greatest_user(facts)[0] == "nginx")
    ):
        # Counted with what computes.
        return causes.PROCESS_LOCK, 0.0, ""
    inner = (*_INNER, "postgres cpu") if seen.has_full_cpu else _INNER
    if max(map(split.share, inner)) >= _INNERMOST:
        # They queue behind those that are there.
        return causes.PROCESS_LOCK, 0.0, ""
    used = seen.all_sessions - seen.session("idle")
    if facts.pool and used >= _POOL_IN_USE * facts.pool:
        return causes.POOL, share, f"{used:.1f} of {facts.pool} connections were in use; {text}"
    if seen.threads.get("lock", 0.0) < _LOCKED * split.places.get("process", 0.0):
        return causes.UNSEEN, share, f"{text}, in an event loop or where no thread is seen"
    return causes.PROCESS_LOCK, share, text


def predicted_rate(facts: Facts) -> float | None:
    """Return the rate at which the busiest resource is full, by the utilization law: demand is busy
    share × servers ÷ throughput, and does not change with the load.
    """
    calm = facts.half
    if calm is None or not calm.answered:
        return None
    limits = [calm.answered / calm.cpu.target] if calm.cpu.target else []
    if facts.processes and calm.server_cpu:
        limits.append(facts.processes * calm.answered / calm.server_cpu)
    if facts.slots and calm.in_flight:
        limits.append(facts.slots * calm.answered / calm.in_flight)
    return round(min(limits), 2) if limits else None
