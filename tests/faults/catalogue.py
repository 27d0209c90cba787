"""The faults, each injected separately."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass

from tests.faults.hand import Broken, Hand


@dataclass(frozen=True)
class Fault:
    """A fault of `lasts` seconds. With `unseen`, no client may notice it. With `felt`, at least one
    client must notice it: otherwise the fault was not injected.
    """

    name: str
    breaks: Callable[[Hand], Broken]
    lasts: int = 0
    unseen: bool = False
    felt: bool = False
    # Preparation before the load, reverted after it.
    prepares: Callable[[Hand], Broken] = lambda _hand: nullcontext()
    # Whether the fault stays for `lasts` seconds; otherwise it ends by itself.
    waits: bool = True


FAULTS = [
    Fault("worker killed", lambda hand: hand.worker_killed()),
    Fault("master killed", lambda hand: hand.master_killed(), felt=True),
    Fault("Postgres restarted", lambda hand: hand.stopped("postgres")),
    Fault("Postgres stopped 10 s", lambda hand: hand.stopped("postgres"), lasts=10, felt=True),
    Fault("Redis stopped", lambda hand: hand.stopped("redis"), lasts=4, unseen=True),
    Fault("Redis frozen", lambda hand: hand.frozen("redis"), lasts=4, unseen=True),
    Fault("Nginx reloaded", lambda hand: hand.nginx_reloaded(), unseen=True),
    Fault("Prometheus stopped", lambda hand: hand.stopped("prometheus"), lasts=4, unseen=True),
    Fault("connections used up", lambda hand: hand.connections_used_up(), lasts=6, felt=True),
    Fault(
        "cache disk full",
        lambda hand: hand.disk_full(),
        lasts=6,
        unseen=True,
        prepares=lambda hand: hand.own_disk(),
    ),
    Fault("backend frozen 5 s", lambda hand: hand.frozen("backend"), lasts=5, felt=True),
    Fault(
        "database 2 s away",
        lambda hand: hand.slow_database(2000),
        lasts=8,
        felt=True,
        prepares=lambda hand: hand.behind_proxy(),
    ),
    Fault("deploy", lambda hand: hand.deployed(), lasts=6, waits=False),
]
