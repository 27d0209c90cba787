"""What a rule asks about a run. Each is a function of its facts."""

from collections.abc import Mapping

from load_lab.diagnosis import causes
from load_lab.diagnosis.causes import Cause
from load_lab.diagnosis.facts import Facts
from load_lab.diagnosis.logged import CAUSES, logged_causes
from load_lab.diagnosis.period import FULL_SLOTS, Period
from load_lab.diagnosis.split import LOCKS, Place, split_of
from load_lab.machine.observation import LITTLE_WAIT, POSTGRES, SERVER
from load_lab.stack.measuring_services import side_of

# From this share of the requests on, what waits in front of a place is behind it.
INNERMOST = 0.3
# Of one process's CPU.
_FULL_PROCESS, _BUSY_PROCESS = 0.85, 0.5
# Of a pool: between two requests a connection is idle for a moment. And of the requests that wait
# in the server: so many threads at a lock show that it is one.
_POOL_IN_USE, _LOCKED = 0.7, 0.5
# Of the requests: what is sent in a period, and what is answered in it, are not the same requests.
_ONE_TRIP = 0.5
# A round trip to a Redis that is not slow takes less; seconds.
SLOW_REDIS = 0.005
# Sessions that have a CPU for less of the time that they compute wait for one; and the server's
# threads, if they wait for longer than this share of theirs.
_COMPUTING, _WAITS_FOR_CPU = 0.8, 0.5
# Of the time.
_MOSTLY_LOCKED = 0.7
# Of the processes: by so many, the threads that work may differ from them.
_MAY_DIFFER = 0.15
# A worker of Nginx uses one CPU.
_FULL_NGINX = 0.75
# A request at a worker takes so many times as long as alone: it waits for others there. With fewer
# at once than the second number, they are served one at a time.
_CONTENDED, _ONE_AT_A_TIME = 2.0, 1.5
_OWN_SERVICES = ("backend", "backend-beside", "target")
# Places behind the server's own queues.
INNER: tuple[Place, ...] = (*LOCKS, "postgres io", "postgres internal", "redis", "file")
# Of the target's CPUs by other programs.
TAKEN = 0.2
# In the first seconds a request is alone with fewer in flight.
_ALONE = 1.5
# Of the first requests in flight: with more of them on the way, the server is not what takes long;
# and how many there must be.
_MOST_BETWEEN, _SOME_IN_FLIGHT = 0.5, 0.5
# Of the failed requests.
MANY_REJECTED = 0.5
# Of the connections: for superusers, Postgres's own three, and the one that looks.
RESERVED, _USED_UP = 4, 0.9


def has_full_cpu(facts: Facts) -> bool:
    """Return whether the target's CPUs are full, and requests wait for one, or only use one: 95 %
    busy may be enough.
    """
    # All that Nginx does is for requests.
    is_nginx = greatest_user(facts)[0] in ("nginx", "cache")
    is_waited_for = waits_for_cpu(facts) or is_nginx or _is_own(facts)
    return facts.saturated.has_full_cpu and is_waited_for


def waits_for_cpu(facts: Facts) -> bool:
    split = facts.split
    waiting = facts.saturated.waited + split.places.get("postgres cpu", 0.0)
    return waiting > LITTLE_WAIT or split.share("cpu", "cpu wait", "postgres cpu") > 0.5


def _is_own(facts: Facts) -> bool:
    """Return whether the server itself uses most of the CPU time of the target's services, and of
    other programs: then what waits inside it waits for a CPU.
    """
    cpu = facts.saturated.cpu
    name, own = greatest_user(facts)
    services = sum(n for service, n in cpu.services.items() if side_of(service) == "target")
    return not name and own >= 0.5 * max(own, cpu.others + services)


def greatest_user(facts: Facts) -> tuple[str, float]:
    """Return the service that uses most CPU time, "" for the server itself, and its cores."""
    services = facts.saturated.cpu.services
    own = sum(services.get(name, 0.0) for name in _OWN_SERVICES) or facts.saturated.server_cpu
    users = {
        name: cores
        for name, cores in services.items()
        if name not in _OWN_SERVICES and side_of(name) == "target"
    }
    name = max(users, key=lambda one: users[one], default="")
    return (name, users[name]) if name and users[name] > own else ("", own)


def cpu_of_user(facts: Facts) -> Cause:
    name, _ = greatest_user(facts)
    return _CPU_CAUSES.get(name) or causes.cpu_of(name)


_CPU_CAUSES = {
    "": causes.BACKEND_CPU,
    "cache": causes.NGINX_CPU,
    "postgres": causes.POSTGRES_CPU,
    "redis": causes.REDIS_CPU,
    "nginx": causes.NGINX_CPU,
}


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


def are_queued_for_cpu(facts: Facts) -> bool:
    """Return whether requests in the server wait in an event loop, or for the GIL, for a CPU."""
    is_own = facts.saturated.busiest >= _FULL_PROCESS or _is_own(facts)
    return has_full_cpu(facts) and is_own


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


def is_nginx_full(facts: Facts) -> bool:
    return nginx_cores(facts.saturated) >= _FULL_NGINX


def nginx_cores(seen: Period) -> float:
    """Return the cores of the busier Nginx: the stack's, or the one in front of another target."""
    services = seen.cpu.services
    return max(services.get(name, 0.0) for name in ("nginx", "cache"))


def queues_for_postgres_cpu(facts: Facts) -> bool:
    """Return whether Postgres's sessions wait for a CPU: more of them would compute no more."""
    cores = facts.saturated.cpu.services.get("postgres", 0.0)
    return cores < _COMPUTING * facts.saturated.session("cpu")


def threads_wait_for_cpu(facts: Facts) -> bool:
    return facts.saturated.waited >= _WAITS_FOR_CPU * facts.saturated.server_cpu


def are_behind_others(facts: Facts) -> bool:
    """Return whether requests inside the server queue behind those at an inner place."""
    inner = (*INNER, "postgres cpu") if facts.saturated.has_full_cpu else INNER
    return max(map(facts.split.share, inner)) >= INNERMOST


def is_pool_used(facts: Facts) -> bool:
    used = facts.saturated.all_sessions - facts.saturated.session("idle")
    return facts.pool is not None and used >= _POOL_IN_USE * facts.pool


def are_slots_full(facts: Facts) -> bool:
    slots = facts.all_slots
    return slots is not None and facts.split.busy >= FULL_SLOTS * slots


def are_slots_the_limit(facts: Facts) -> bool:
    """Return whether more slots would serve more: requests do not wait for each other there. Of
    slots that are only seen, that must be known.
    """
    is_known = facts.slots is not None or facts.alone is not None
    return is_known and are_slots_full(facts) and not is_contended(facts)


def are_locked(facts: Facts) -> bool:
    """Return whether requests that wait inside the server have a thread at a lock; idle threads
    look the same.
    """
    seen = facts.saturated
    waiting = min(seen.thread("lock"), seen.workers) if seen.active else seen.thread("lock")
    return waiting >= _LOCKED * facts.split.places.get("process", 0.0)


def is_one_thread_each(facts: Facts) -> bool:
    """Return whether requests wait for the one thread of each process, which works all the time: no
    thread waits for requests, and each process accepted more than it works on.
    """
    seen = facts.saturated
    most = _MAY_DIFFER * seen.working
    return (
        facts.slots is None
        and seen.working >= 1 - _MAY_DIFFER
        and abs(seen.workers - seen.working) <= most
        and seen.working - seen.blocked <= most
        and (seen.in_flight or 0.0) >= _CONTENDED * seen.working
        and not are_processes_full(facts)
        and not is_contended(facts)
    )


def at_once(facts: Facts) -> float | None:
    """Return how many requests are served at once, by Little's law: their rate × the time that one
    takes alone. A queue, or threads that wait for each other, do not count.
    """
    return None if facts.alone is None else facts.saturated.answered * facts.alone


def is_contended(facts: Facts) -> bool:
    """Return whether requests that have a worker wait there for each other: more workers would not
    help.
    """
    served = at_once(facts)
    return served is not None and facts.split.busy >= _CONTENDED * max(served, 1.0)


def is_serial(facts: Facts) -> bool:
    served = at_once(facts)
    return served is not None and is_contended(facts) and served < _ONE_AT_A_TIME


def locked_file(facts: Facts) -> str:
    """Return the file that the server has locked most of the time, and has not in the quiet part
    of the load, as that of a process's number; "" for none.
    """
    calm = facts.half.locked if facts.half else facts.saturated.locked
    locked = {n: v for n, v in facts.saturated.locked.items() if calm.get(n, 0.0) < _MOSTLY_LOCKED}
    name = max(locked, key=lambda each: locked[each], default="")
    return name if locked.get(name, 0.0) >= _MOSTLY_LOCKED else ""


def is_under_file_lock(facts: Facts) -> bool:
    """Return whether requests are served one at a time, under the lock of a file."""
    is_seen = locked_file(facts) or facts.split.share("file") >= INNERMOST
    return is_serial(facts) and bool(is_seen)


def is_under_lock(facts: Facts) -> bool:
    """Return whether requests are served one at a time, and the others have a thread at a lock."""
    is_seen = are_locked(facts) and facts.split.share("process") >= INNERMOST
    return is_serial(facts) and is_seen


def has_slow_redis(facts: Facts) -> bool:
    trip = seconds_of_trip(facts, "redis", "redis")
    return trip is not None and trip > SLOW_REDIS


def seconds_of_trip(facts: Facts, dependency: str, place: Place) -> float | None:
    """Return how long a request is at a place for each round trip to a dependency; None where few
    requests have one.
    """
    seen = facts.saturated
    sent = seen.sent.get(dependency, 0.0)
    if not seen.answered or sent < _ONE_TRIP * seen.answered:
        return None
    return facts.split.places.get(place, 0.0) / sent


# Of the run as a whole.


def is_slow_alone(facts: Facts) -> bool:
    """Return whether requests without a queue exceed the limit, and do not fail after a time
    limit.
    """
    is_slow = facts.first_p95 is not None and facts.first_p95 > facts.p95_limit
    return is_slow and _begins_alone(facts) and not any(logged_causes(facts, CAUSES))


def _begins_alone(facts: Facts) -> bool:
    """Return whether the load began without a queue: with few requests, or free workers and CPUs,
    none of which waited for another request.
    """
    begin = facts.begin
    if begin is None or begin.in_flight is None:
        return False
    if nginx_cores(begin) >= _FULL_NGINX:
        # Requests that wait in it are not seen in the server.
        return False
    requests = begin.in_flight + (begin.queued or 0.0)
    has_free = facts.slots is not None and requests < FULL_SLOTS * facts.slots
    split = split_of(begin, facts.slots)
    if split.share(*LOCKS) >= INNERMOST:
        # Another program's, or of the few requests that there are.
        return False
    waits = split.share("process", "cpu wait") >= INNERMOST
    return requests < _ALONE or (has_free and not begin.has_full_cpu and not waits)


def is_slow_on_the_way(facts: Facts) -> bool:
    """Return whether most of the first requests were between the clients and the server."""
    early = facts.early
    if early is None or not is_slow_alone(facts):
        return False
    share = split_of(early, facts.slots).share("clients")
    return (early.in_flight or 0.0) > _SOME_IN_FLIGHT and share > _MOST_BETWEEN


def is_taken_by_others(facts: Facts) -> bool:
    """Return whether other programs used full CPUs, and requests waited for one; those of a target
    that is not seen are its own perhaps.
    """
    cpu = facts.saturated.cpu
    if not facts.observed or not facts.saturated.has_full_cpu or cpu.taken <= TAKEN:
        return False
    # What has a low priority takes only what nobody needs.
    return waits_for_cpu(facts)


def most_throttled(facts: Facts) -> str:
    """Return the service that its CPU quota stopped most, of the server and those that requests
    wait for.
    """
    return _most(facts, facts.saturated.throttled)


def killed(facts: Facts) -> str:
    """Return such a service whose processes the kernel killed for lack of memory; "" for none."""
    return _most(facts, {n: v for n, v in facts.saturated.killed.items() if v > 0})


def _most(facts: Facts, values: Mapping[str, float]) -> str:
    names = [name for name in values if is_awaited(facts, name)]
    return max(names, key=lambda name: values[name], default="")


def is_awaited(facts: Facts, service: str) -> bool:
    """Return whether it is the server, or requests wait for it."""
    places = waiting_for(service)
    if service == POSTGRES:
        places += ("postgres cpu",)
    return service == SERVER or facts.split.share(*places) >= INNERMOST


def lacks_files(facts: Facts) -> bool:
    """Return whether Nginx has too few open files, and requests wait in front of it, or failed."""
    count = facts.rejections.get("files", 0)
    waits = facts.split.share("clients") >= INNERMOST
    fails = facts.by_errors and count >= MANY_REJECTED * facts.failed
    return count > 0 and (waits or fails)


def lacks_users(facts: Facts) -> bool:
    """Return whether arrivals were dropped in front of a server with free workers, in which
    requests do not stand in a queue behind which more would stand, too.
    """
    seen = facts.saturated
    if seen.dropped <= 0 or seen.in_flight is None or seen.has_full_cpu or facts.slots is None:
        return False
    is_in_queue = facts.split.share("process", *LOCKS) >= INNERMOST
    return seen.in_flight < FULL_SLOTS * facts.slots and not is_in_queue


def may_lack_users(facts: Facts) -> bool:
    """Return whether the load had too few virtual users for a server whose limits are not known."""
    seen = facts.saturated
    return facts.slots is None and seen.dropped > 0 and not seen.has_full_cpu


def is_refused_by(facts: Facts, reason: str) -> bool:
    count = facts.rejections.get(reason, 0)
    return facts.by_errors and count > 0 and count >= MANY_REJECTED * facts.failed


def is_shed(facts: Facts) -> bool:
    return facts.rejections.get("shed", 0) >= MANY_REJECTED * max(facts.failed, 1)


def lacks_connections(facts: Facts) -> bool:
    limit = facts.max_connections
    if not limit or not facts.by_errors or is_shed(facts):
        return False
    return facts.saturated.most_sessions >= _USED_UP * (limit - RESERVED)


def fails_without_a_queue(facts: Facts) -> bool:
    """Return whether requests fail, nobody refused them, and nothing is full: by a bug, a token
    that expired, or a limit that is not seen. Shedding has a cause behind it.
    """
    is_full = (
        facts.saturated.has_full_cpu
        or are_processes_full(facts)
        or facts.split.waiting >= 1
        or are_slots_full(facts)
    )
    return facts.by_errors and not is_shed(facts) and not is_full
