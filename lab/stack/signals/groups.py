"""What control groups did to services: stopped them by a CPU quota, and killed their processes for
lack of memory.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")
# What tells it in version 2, then in version 1: names in a group's files, with their units.
_QUOTA = {"cpu.stat": {"throttled_usec": 1e-6, "throttled_time": 1e-9}}
_KILLS = {"memory.events": {"oom_kill": 1.0}, "memory.oom_control": {"oom_kill": 1.0}}


@dataclass(frozen=True)
class GroupEvents:
    """So far, by service: seconds `throttled` by a CPU quota; processes `killed` for lack of
    memory. A group counts once, for the first of its services.
    """

    throttled: Mapping[str, float] = field(default_factory=dict)
    killed: Mapping[str, float] = field(default_factory=dict)


def group_events(services: Mapping[str, int]) -> GroupEvents:
    """Return the events of the groups of services, given by their main processes."""
    groups = {service: _groups(pid) for service, pid in services.items()}
    # The root's kills are those of the whole machine.
    limited = {service: [one for one in each if one[1] != "/"] for service, each in groups.items()}
    return GroupEvents(_counts(groups, "cpu", _QUOTA), _counts(limited, "memory", _KILLS))


# Controllers (version 2 has none) and path.
_Group = tuple[str, str]


def _groups(pid: int) -> list[_Group]:
    with suppress(OSError):
        lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
        parts = [line.split(":", 2) for line in lines]
        return [(controllers, path) for _, controllers, path in parts]
    return []


def _counts(
    groups: Mapping[str, Iterable[_Group]],
    controller: str,
    files: Mapping[str, Mapping[str, float]],
) -> dict[str, float]:
    found = dict[Path, str]()
    for service, each in groups.items():
        if file := next(_files(each, controller, files), None):
            found.setdefault(file, service)
    return {service: _value(file, files[file.name]) for file, service in found.items()}


def _files(groups: Iterable[_Group], controller: str, names: Iterable[str]) -> Iterator[Path]:
    for controllers, path in groups:
        for folder in _folders(controllers, path, controller):
            yield from (folder / name for name in names if (folder / name).exists())


def _folders(controllers: str, path: str, controller: str) -> list[Path]:
    if controllers == "":
        return [Path(f"{_CGROUPS}{path}"), Path(f"{_CGROUPS}/unified{path}")]
    if controller in controllers.split(","):
        return [Path(f"{_CGROUPS}/{controllers}{path}"), Path(f"{_CGROUPS}/{controller}{path}")]
    return []


def _value(file: Path, units: Mapping[str, float]) -> float:
    with suppress(OSError, ValueError):
        values = dict(line.split() for line in file.read_text().splitlines())
        return next((int(values[name]) * unit for name, unit in units.items() if name in values), 0)
    return 0.0
