"""What control groups did to services: stopped them by a CPU quota, and killed their processes for
lack of memory.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

_PROC, _CGROUPS = Path("/proc"), Path("/sys/fs/cgroup")
# In version 2, then in version 1: the file that tells it, and names in it with their units.
_QUOTA = {"cpu.stat": {"throttled_usec": 1e-6, "throttled_time": 1e-9}}
_KILLS = {"memory.events": {"oom_kill": 1.0}, "memory.oom_control": {"oom_kill": 1.0}}
# Seconds per second: with less, only the slowest responses show it.
MUCH_THROTTLED = 0.1


@dataclass(frozen=True)
class GroupEvents:
    """So far, by service: seconds `throttled` by a CPU quota; processes `killed` for lack of
    memory.
    """

    throttled: Mapping[str, float] = field(default_factory=dict)
    killed: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class ControlGroups:
    """The files of the services' groups: looked for once, since a killed process has none."""

    quotas: Mapping[str, Path]
    kills: Mapping[str, Path]

    @classmethod
    def of(cls, services: Mapping[str, int]) -> "ControlGroups":
        """Find the groups of services, given by their main processes. A group that several are in
        counts for the first; one that the lab is in has kills of other programs.
        """
        own = _file(os.getpid(), "memory", _KILLS)
        kills = _by_service(services, "memory", _KILLS)
        return cls(
            _by_service(services, "cpu", _QUOTA),
            {service: file for service, file in kills.items() if file != own},
        )

    def events(self) -> GroupEvents:
        return GroupEvents(_values(self.quotas, _QUOTA), _values(self.kills, _KILLS))


def _by_service(
    services: Mapping[str, int], controller: str, names: Iterable[str]
) -> dict[str, Path]:
    found = dict[Path, str]()
    for service, pid in services.items():
        if file := _file(pid, controller, names):
            found.setdefault(file, service)
    return {service: file for file, service in found.items()}


def _file(pid: int, controller: str, names: Iterable[str]) -> Path | None:
    with suppress(OSError):
        for line in (_PROC / str(pid) / "cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            for folder in _folders(controllers, path.lstrip("/"), controller):
                for name in names:
                    if (folder / name).exists():
                        return folder / name
    return None


def _folders(controllers: str, path: str, controller: str) -> Iterator[Path]:
    """Yield where the group of a line may be: of version 2, or of version 1's controller."""
    if controllers == "":
        yield from (_CGROUPS / path, _CGROUPS / "unified" / path)
    elif controller in controllers.split(","):
        yield from (_CGROUPS / controllers / path, _CGROUPS / controller / path)


def _values(
    files: Mapping[str, Path], units: Mapping[str, Mapping[str, float]]
) -> dict[str, float]:
    values = {service: _value(file, units[file.name]) for service, file in files.items()}
    return {service: value for service, value in values.items() if value is not None}


def _value(file: Path, units: Mapping[str, float]) -> float | None:
    with suppress(OSError, ValueError):
        values = dict(line.split() for line in file.read_text().splitlines())
        return next((int(values[name]) * unit for name, unit in units.items() if name in values), 0)
    return None
