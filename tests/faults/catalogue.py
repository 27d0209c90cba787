"""The faults, each injected separately."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass

from tests.faults.injector import FaultInjector, Injection


@dataclass(frozen=True)
class Fault:
    """A fault of `seconds`. With `unseen`, no client may notice it. With `felt`, at least one
    client must notice it: otherwise the fault was not injected.
    """

    name: str
    inject: Callable[[FaultInjector], Injection]
    seconds: int = 0
    unseen: bool = False
    felt: bool = False
    # Preparation before the load, reverted after it.
    prepare: Callable[[FaultInjector], Injection] = lambda _injector: nullcontext()
    # Whether the tests before each merge inject it, on the native engine: one fault of each kind.
    is_core: bool = False
    # Whether the fault stays for `seconds`; otherwise it ends by itself.
    waits: bool = True


FAULTS = [
    Fault("worker killed", lambda injector: injector.kill_worker(), is_core=True),
    Fault("master killed", lambda injector: injector.kill_master(), felt=True),
    Fault("Postgres restarted", lambda injector: injector.stop("postgres")),
    Fault(
        "Postgres stopped 10 s", lambda injector: injector.stop("postgres"), seconds=10, felt=True
    ),
    Fault(
        "Redis stopped",
        lambda injector: injector.stop("redis"),
        seconds=4,
        unseen=True,
        is_core=True,
    ),
    Fault(
        "Redis frozen",
        lambda injector: injector.freeze("redis"),
        seconds=4,
        unseen=True,
        is_core=True,
    ),
    Fault("Nginx reloaded", lambda injector: injector.reload_nginx(), unseen=True, is_core=True),
    Fault(
        "Prometheus stopped", lambda injector: injector.stop("prometheus"), seconds=4, unseen=True
    ),
    Fault(
        "connections used up",
        lambda injector: injector.exhaust_connections(),
        seconds=6,
        felt=True,
        is_core=True,
    ),
    Fault(
        "cache disk full",
        lambda injector: injector.fill_disk(),
        seconds=6,
        unseen=True,
        prepare=lambda injector: injector.use_small_disk(),
    ),
    Fault("backend frozen 5 s", lambda injector: injector.freeze("backend"), seconds=5, felt=True),
    Fault(
        "database 2 s away",
        lambda injector: injector.delay_database(2000),
        seconds=8,
        felt=True,
        prepare=lambda injector: injector.use_proxy(),
        is_core=True,
    ),
    Fault("deploy", lambda injector: injector.deploy(), seconds=6, waits=False),
]
