"""What limits a run wherever its requests spend their time, and who refused requests."""

from collections.abc import Iterator, Mapping

from load_lab.diagnosis import causes
from load_lab.diagnosis.causes import Cause
from load_lab.diagnosis.facts import Facts
from load_lab.diagnosis.logged import CAUSES, STATES, logged_causes
from load_lab.diagnosis.period import FULL_SLOTS, Period
from load_lab.diagnosis.ranking import INNERMOST, LOCKS, wait_for_cpu, waiting_for
from load_lab.diagnosis.split import split_of
from load_lab.machine.control_groups import MUCH_THROTTLED
from load_lab.machine.observation import POSTGRES, SERVER
from load_lab.results.limit import Limit

# Of the target's CPUs by other programs, and steal.
_TAKEN, _MUCH_STEAL = 0.2, 0.15
_MANY_FAULTS = 50
# Of the connections, for superusers: Postgres's own three, and the one that looks.
_RESERVED = 4
# Of the connections, and the failed requests.
_USED_UP, _MANY_REJECTED = 0.9, 0.5
# In the first seconds a request is alone with fewer in flight.
_ALONE = 1.5
# Of the first requests in flight: with more of them on the way, the server is not what takes long;
# and how many there must be.
_MOST_BETWEEN, _SOME_IN_FLIGHT = 0.5, 0.5


def overriding_causes(facts: Facts) -> Iterator[tuple[Cause, str]]:
    """Yield each such cause with its evidence, the one that counts first."""
    yield from logged_causes(facts, STATES)
    yield from _void(facts)
    yield from _refused(facts)


def _void(facts: Facts) -> Iterator[tuple[Cause, str]]:
    """Yield what limits a run wherever its requests spend their time."""
    seen = facts.saturated
    yield from _slow_alone(facts)
    if facts.limited_by == Limit.GENERATOR:
        text = f"its CPUs were {seen.cpu.load:.0%} busy"
        if seen.cpu.throttled > MUCH_THROTTLED:
            text += f", and a CPU quota stopped it for {seen.cpu.throttled:.2f} s of each second"
        yield causes.GENERATOR, text
    if facts.limited_by == Limit.OTHERS or _is_taken_by_others(facts):
        yield (
            causes.OTHERS,
            f"other programs used {seen.cpu.taken:.0%} of the target's CPUs, and "
            f"{seen.cpu.others:.1f} CPUs in all",
        )
    if seen.cpu.steal > _MUCH_STEAL:
        yield causes.STEAL, f"it took {seen.cpu.steal:.0%} of the CPU time"
    yield from _quota(facts)
    yield from _memory(facts)
    yield from _open_files(facts)
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


def _open_files(facts: Facts) -> Iterator[tuple[Cause, str]]:
    """Yield Nginx's limit if requests wait in front of it, or failed."""
    count = facts.rejections.get("files", 0)
    waits = split_of(facts.saturated, facts.slots).share("clients") >= INNERMOST
    fails = facts.by_errors and count >= _MANY_REJECTED * facts.failed
    if count and (waits or fails):
        yield causes.NGINX_FILES, f"its log has “Too many open files” {count:,} times"


def _most_first(values: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted(values.items(), key=lambda item: -item[1])


def _is_awaited(facts: Facts, service: str) -> bool:
    """Return whether it is the server, or requests wait for it."""
    places = waiting_for(service)
    if service == POSTGRES:
        places += ("postgres cpu",)
    split = split_of(facts.saturated, facts.slots)
    return service == SERVER or split.share(*places) >= INNERMOST


_TITLES = {SERVER: "the server", "nginx": "Nginx", "postgres": "Postgres", "redis": "Redis"}


def _slow_alone(facts: Facts) -> Iterator[tuple[Cause, str]]:
    """Yield why requests without a queue exceed the limit."""
    if facts.first_p95 is None or facts.first_p95 <= facts.p95_limit or not _begins_alone(facts):
        return
    if any(logged_causes(facts, CAUSES)):
        # Requests that fail after a time limit.
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
    if split.share(*LOCKS) >= INNERMOST:
        # Another program's, or of the few requests that there are.
        return False
    waits = split.share("process", "cpu wait") >= INNERMOST
    return requests < _ALONE or (has_free and not begin.has_full_cpu and not waits)


def _are_between(early: Period, slots: int | None) -> bool:
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
    return wait_for_cpu(facts, split_of(facts.saturated, facts.slots))


def _is_in_no_queue(facts: Facts) -> bool:
    """Return whether requests do not stand in a queue behind which more would stand, too."""
    split = split_of(facts.saturated, facts.slots)
    return split.share("process", *LOCKS) < INNERMOST


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
            yield cause, f"it refused {count:,} requests; {facts.failed:,} failed"
    yield from logged_causes(facts, CAUSES)
    limit, sessions = facts.max_connections, facts.saturated.most_sessions
    if limit and not is_shed(facts) and sessions >= _USED_UP * (limit - _RESERVED):
        yield (
            causes.MAX_CONNECTIONS,
            f"{sessions:.0f} of {limit} connections were open; {_RESERVED} are reserved",
        )


def is_shed(facts: Facts) -> bool:
    return facts.rejections.get("shed", 0) >= _MANY_REJECTED * max(facts.failed, 1)
