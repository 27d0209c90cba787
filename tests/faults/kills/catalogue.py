"""The kills, chosen by a seed: signals × commands × moments, and one of each service."""

import itertools
import random
import signal
from dataclasses import dataclass

SEED = 2026
COUNT = 40


@dataclass(frozen=True)
class Moment:
    """`seconds` after a line of the command's output that contains `line`; without a `line`, after
    the command's start.
    """

    line: str
    seconds: float


@dataclass(frozen=True)
class Command:
    """A command, and the lines after which it is killed, each within the next `seconds`.

    With `cold`, the stack is down before. With `resets`, bookings made before are deleted.
    """

    argv: tuple[str, ...]
    lines: dict[str, float]
    cold: bool = False
    resets: bool = False


COMMANDS = {
    "up": Command(
        ("up",),
        {
            "Starting postgres": 0.3,
            "Migrating the database": 1.5,
            "Loading the data": 1.0,
            "Starting backend": 1.0,
            "Starting nginx": 1.0,
        },
        cold=True,
    ),
    "k6": Command(
        ("k6", "hold", "--rate", "20", "--duration", "20s", "--scenario", "list"),
        {"k6 runs, 10 s": 5.0},
    ),
    "run": Command(
        ("run", "cache-ladder", "--quick", "--only", "list/naive/none"),
        {"": 8.0, "Results go to": 15.0},
        resets=True,
    ),
    "bench": Command(
        ("bench", "--quick", "--only", "detail-fast", "--repeat", "1"),
        {"": 8.0, "detail-fast naive": 6.0},
        resets=True,
    ),
    "overload": Command(
        ("overload", "--duration", "10s"),
        {"": 8.0, "capacity": 12.0},
        resets=True,
    ),
}
SIGNALS = {
    "TERM": (signal.SIGTERM,),
    "HUP": (signal.SIGHUP,),
    "KILL": (signal.SIGKILL,),
    "INT twice": (signal.SIGINT, signal.SIGINT),
}
SERVICES = (
    *("postgres", "redis", "toxiproxy", "backend", "backend-metrics", "nginx", "prometheus"),
    *("node-exporter", "process-exporter", "postgres-exporter", "redis-exporter"),
    *("nginx-exporter", "mtail", "supervisord"),
)


@dataclass(frozen=True)
class Kill:
    """A service, or a command with the signals that it gets and the moment of the first."""

    service: str = ""
    command: str = ""
    signals: str = "KILL"
    moment: Moment = Moment("", 0)

    @property
    def name(self) -> str:
        if self.service:
            return self.service
        return f"{self.command}-{self.signals}-{self.moment.line or 'start'}+{self.moment.seconds}"


def choose_kills(seed: int = SEED, count: int = COUNT) -> list[Kill]:
    """Return `count` kills in random order: all services, and different kills of commands."""
    chance = random.Random(seed)
    every = [
        Kill(command=name, signals=signals, moment=Moment(line, round(chance.uniform(0, most), 1)))
        for name, command in COMMANDS.items()
        for signals, (line, most) in itertools.product(SIGNALS, command.lines.items())
    ]
    services = [Kill(service=name) for name in SERVICES]
    chosen = services + chance.sample(every, COUNT - len(services))
    chance.shuffle(chosen)
    return chosen[:count]
