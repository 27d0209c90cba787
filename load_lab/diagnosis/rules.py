"""The rules by which a cause is named: of a run as a whole, and else of each place where requests
spend their time. Of those that hold, the one with the highest priority counts.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from load_lab.diagnosis import causes, conditions, evidence
from load_lab.diagnosis.causes import Cause
from load_lab.diagnosis.conditions import INNER, cpu_of_user, has_full_cpu, waiting_for
from load_lab.diagnosis.facts import Facts
from load_lab.diagnosis.logged import CAUSES, STATES, logged_causes
from load_lab.diagnosis.period import FULL_CPU
from load_lab.diagnosis.split import COMPUTING, Place
from load_lab.machine.control_groups import MUCH_THROTTLED
from load_lab.results.limit import Limit

# Of the CPU time, by the hypervisor; pages a second, read again.
_MUCH_STEAL, _MANY_FAULTS = 0.15, 50


def always(_facts: Facts) -> bool:
    return True


@dataclass(frozen=True)
class Rule:
    """A cause of what requests do at `places`, or of the run as a whole without any, `when` that
    holds; `text` is its evidence.
    """

    cause: Cause | Callable[[Facts], Cause]
    places: tuple[Place, ...]
    text: Callable[[Facts, Place], str]
    when: Callable[[Facts], bool] = always
    priority: int = 0

    def cause_of(self, facts: Facts) -> Cause:
        return self.cause if isinstance(self.cause, Cause) else self.cause(facts)


def whole_run(
    priority: int,
    cause: Cause | Callable[[Facts], Cause],
    when: Callable[[Facts], bool],
    text: Callable[[Facts], str],
) -> Rule:
    return Rule(cause, (), lambda facts, _place: text(facts), when, priority)


def logged(priority: int, rows: Mapping[str, Cause]) -> Rule:
    """Return the rule of what the logs give for most failed requests."""
    return whole_run(
        priority,
        lambda facts: next(logged_causes(facts, rows))[0],
        lambda facts: any(logged_causes(facts, rows)),
        lambda facts: next(logged_causes(facts, rows))[1],
    )


def rule_of_run(facts: Facts) -> Rule | None:
    """Return the rule of what limits a run wherever its requests spend their time."""
    holding = (rule for rule in RULES if not rule.places and rule.when(facts))
    return max(holding, key=attrgetter("priority"), default=None)


def rule_at(facts: Facts, place: Place) -> Rule:
    holding = (rule for rule in RULES if place in rule.places and rule.when(facts))
    return max(holding, key=attrgetter("priority"))


def _innermost(facts: Facts) -> Place:
    return max((*INNER, "postgres cpu"), key=facts.split.share)


def _cause_behind(facts: Facts) -> Cause:
    place = _innermost(facts)
    return rule_at(facts, place).cause_of(facts)


def _text_behind(facts: Facts, _place: Place) -> str:
    place = _innermost(facts)
    return rule_at(facts, place).text(facts, place)


def _full_cpu_of(service: str) -> Callable[[Facts], bool]:
    return lambda facts: has_full_cpu(facts) and conditions.greatest_user(facts)[0] == service


def _full_cpu_of_another(facts: Facts) -> bool:
    return has_full_cpu(facts) and waiting_for(conditions.greatest_user(facts)[0]) == ("outside",)


_BEHIND_SLOTS: Final[tuple[Place, ...]] = (
    *COMPUTING,
    *("network", "redis", "outside", "sleep", "postgres sleep", "disk", "other"),
)
_SESSIONS: dict[Place, tuple[Cause, str]] = {
    "postgres lock": (causes.ROW_LOCKS, "wait for a row's lock"),
    "postgres table": (causes.TABLE_LOCKS, "wait for a table's lock"),
    "postgres advisory": (causes.ADVISORY_LOCKS, "wait for an advisory lock"),
    "postgres wal": (causes.WAL, "wait for a flush of the log"),
    "postgres io": (causes.POSTGRES_IO, "wait for the disk"),
    "postgres internal": (causes.POSTGRES_INTERNAL, "wait for each other"),
}

RULES: Final[tuple[Rule, ...]] = (
    # What makes a run void, and who refused requests.
    logged(300, STATES),
    whole_run(290, causes.CLIENTS, conditions.is_slow_on_the_way, evidence.slow_on_the_way),
    whole_run(280, causes.ONE_REQUEST, conditions.is_slow_alone, evidence.slow_alone),
    whole_run(
        270,
        causes.GENERATOR,
        lambda facts: facts.limited_by == Limit.GENERATOR,
        evidence.generator,
    ),
    whole_run(
        260,
        causes.OTHERS,
        lambda facts: facts.limited_by == Limit.OTHERS or conditions.is_taken_by_others(facts),
        evidence.others,
    ),
    whole_run(
        250,
        causes.STEAL,
        lambda facts: facts.saturated.cpu.steal > _MUCH_STEAL,
        lambda facts: f"it took {facts.saturated.cpu.steal:.0%} of the CPU time",
    ),
    whole_run(
        240,
        lambda facts: evidence.quota_of(conditions.most_throttled(facts)),
        lambda facts: (
            facts.saturated.throttled.get(conditions.most_throttled(facts), 0.0) > MUCH_THROTTLED
        ),
        evidence.quota,
    ),
    whole_run(230, causes.MEMORY, lambda facts: bool(conditions.killed(facts)), evidence.killed),
    whole_run(
        220,
        causes.MEMORY,
        lambda facts: facts.saturated.faults > _MANY_FAULTS,
        lambda facts: f"{facts.saturated.faults:.0f} pages a second were read from the disk again",
    ),
    whole_run(210, causes.NGINX_FILES, conditions.lacks_files, evidence.open_files),
    whole_run(200, causes.VIRTUAL_USERS, conditions.lacks_users, evidence.virtual_users),
    whole_run(
        190,
        causes.REQUEST_LIMIT,
        lambda facts: conditions.is_refused_by(facts, "limit"),
        lambda facts: evidence.refused(facts, "limit"),
    ),
    whole_run(
        180,
        causes.NGINX_CONNECTIONS,
        lambda facts: conditions.is_refused_by(facts, "connections"),
        lambda facts: evidence.refused(facts, "connections"),
    ),
    logged(175, CAUSES),
    whole_run(170, causes.MAX_CONNECTIONS, conditions.lacks_connections, evidence.connections),
    # A full CPU: of the service that uses most of it, with all that waits for that service.
    Rule(cpu_of_user, COMPUTING, evidence.full_cpu, has_full_cpu, 90),
    Rule(cpu_of_user, ("process",), evidence.full_cpu, conditions.are_queued_for_cpu, 90),
    Rule(cpu_of_user, ("outside",), evidence.full_cpu, _full_cpu_of_another, 90),
    *(
        Rule(cpu_of_user, waiting_for(service), evidence.full_cpu, _full_cpu_of(service), 90)
        for service in ("cache", "nginx", "postgres", "redis", "toxiproxy")
    ),
    Rule(
        causes.GIL,
        ("cpu", "cpu wait", "process"),
        evidence.full_processes,
        conditions.are_processes_full,
        80,
    ),
    # Requests inside the server.
    Rule(_cause_behind, ("process",), _text_behind, conditions.are_behind_others, 70),
    Rule(causes.POOL, ("process",), evidence.pool, conditions.is_pool_used, 65),
    Rule(
        causes.EVENT_LOOP,
        ("process", *_BEHIND_SLOTS),
        evidence.one_thread,
        conditions.is_one_thread_each,
        60,
    ),
    Rule(causes.PROCESS_LOCK, ("process",), evidence.lock, conditions.are_locked, 50),
    Rule(causes.SERIAL, ("process",), evidence.serial, conditions.is_serial, 40),
    Rule(causes.UNSEEN, ("process",), evidence.unseen),
    # Worker slots, where what they wait for is not full itself.
    Rule(causes.SLOTS, _BEHIND_SLOTS, evidence.at_place, conditions.are_slots_the_limit, 10),
    Rule(
        causes.POSTGRES_CPU,
        ("postgres cpu",),
        evidence.sessions("compute"),
        conditions.queues_for_postgres_cpu,
        20,
    ),
    Rule(
        causes.BACKEND_CPU,
        ("cpu", "cpu wait"),
        evidence.at_place,
        conditions.threads_wait_for_cpu,
        20,
    ),
    Rule(
        causes.FILE_LOCK,
        ("process", *_BEHIND_SLOTS),
        evidence.locked_file,
        conditions.is_under_file_lock,
        45,
    ),
    Rule(causes.PROCESS_LOCK, _BEHIND_SLOTS, evidence.lock, conditions.is_under_lock, 40),
    Rule(causes.SERIAL, ("sleep", "other"), evidence.serial, conditions.is_serial, 30),
    Rule(causes.UNSEEN, ("sleep", "other"), evidence.serial, conditions.is_contended, 20),
    Rule(causes.REDIS, ("redis",), evidence.redis, conditions.has_slow_redis, 25),
    Rule(
        causes.REDIS_CPU,
        ("redis",),
        evidence.redis,
        lambda facts: facts.saturated.cpu.services.get("redis", 0.0) > FULL_CPU,
        30,
    ),
    Rule(causes.POSTGRES_CPU, ("postgres cpu",), evidence.sessions("compute")),
    Rule(causes.UNSEEN, ("cpu", "cpu wait", "other"), evidence.at_place),
    Rule(causes.NETWORK, ("network",), evidence.network),
    Rule(causes.REDIS, ("redis",), evidence.redis),
    Rule(causes.OUTSIDE, ("outside", "sleep", "postgres sleep"), evidence.at_place),
    Rule(causes.DISK, ("disk",), evidence.at_place),
    # What more workers can't help.
    *(Rule(cause, (place,), evidence.sessions(what)) for place, (cause, what) in _SESSIONS.items()),
    Rule(causes.POSTGRES, ("postgres",), evidence.at_place),
    Rule(causes.FILE_LOCK, ("file",), evidence.at_place),
    Rule(causes.NGINX_CPU, ("clients",), evidence.nginx, conditions.is_nginx_full, 20),
    Rule(causes.CLIENTS, ("clients",), evidence.at_place),
)
