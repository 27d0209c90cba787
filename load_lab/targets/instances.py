"""Names in braces by which two instances of a target differ, and their values."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from load_lab.paths import State, compared_state, current_state
from load_lab.stack import http
from load_lab.stack.free_ports import free_ports
from load_lab.targets.declared import DeclaredTarget
from load_lab.targets.file import Command, TargetFile

# {port} is the port of url, {port2} to {port9} are others, {database} is a name. Not ${port}.
_NAME = re.compile(r"(?<!\$)\{(port[2-9]?|database)\}")
# Next to those of two stacks.
_FIRST_PORT = 24_000


@dataclass(frozen=True)
class InstanceNames:
    """The values of the names for the first or the second instance of a target."""

    number: int
    values: Mapping[str, str]

    @property
    def state(self) -> State:
        """Return where the logs of its processes are: two at once are stopped by themselves."""
        return current_state() if self.number == 1 else compared_state(self.number)


def instance_names(target: DeclaredTarget, number: int = 1) -> InstanceNames:
    """Return an instance of a target: the first one listens at the port of its file. Its values are
    the same for as long as this command runs.
    """
    _, port = http.address(target.file.url)
    names = frozenset(used_names(target.file) | {"port"})
    return _instance(re.sub(r"\W", "_", target.path.stem), port, names, number)


@cache
def _instance(stem: str, port: int, names: frozenset[str], number: int) -> InstanceNames:
    free = free_ports(_FIRST_PORT + 100 * number)
    values = {"database": stem if number == 1 else f"{stem}_{number}"}
    for name in sorted(names - {"database"}):
        is_own = name == "port" and number == 1
        values[name] = str(port if is_own else next(free))
    return InstanceNames(number, values)


def used_names(file: TargetFile) -> set[str]:
    """Return which of the names the file has. An option of the same name is not one of them."""
    options = file.start.options if file.start else {}
    return {name for text in _texts(file) for name in _NAME.findall(text) if name not in options}


def filled(target: DeclaredTarget, instance: InstanceNames) -> DeclaredTarget:
    """Return the target with the instance's values in place of their names."""
    file, options = target.file, target.file.start.options if target.file.start else {}

    def fill(text: str | int) -> str:
        return _NAME.sub(lambda m: m[0] if m[1] in options else instance.values[m[1]], str(text))

    def words(command: Command) -> Command:
        return tuple(map(fill, command))

    changes: dict[str, Any] = {"url": _url(file.url, instance)}
    if file.postgres:
        changes["postgres"] = fill(file.postgres)
    if file.start:
        env = {name: fill(value) for name, value in file.start.env.items()}
        prepare = words(file.start.prepare) if file.start.prepare else None
        update = {"command": words(file.start.command), "prepare": prepare, "env": env}
        changes["start"] = file.start.model_copy(update=update)
    if file.reset:
        changes["reset"] = file.reset.model_copy(update={"command": words(file.reset.command)})
    if file.auth:
        changes["auth"] = file.auth.model_copy(update={"command": words(file.auth.command)})
    return replace(target, file=file.model_copy(update=changes))


def _url(url: str, instance: InstanceNames) -> str:
    """Return the address of an instance: the second one is next to the first."""
    if instance.number == 1:
        return url
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return urlunsplit(parts._replace(netloc=f"{host}:{instance.values['port']}"))


def _texts(file: TargetFile) -> Iterator[str]:
    if file.start:
        yield from (*file.start.command, *(file.start.prepare or ()))
        yield from map(str, file.start.env.values())
    yield from file.reset.command if file.reset else ()
    yield from file.auth.command if file.auth else ()
    yield file.postgres or ""
