"""Make the mix of a target: from its OpenAPI document, Django's routes, a log or a HAR file."""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import httpx

from load_lab.console import note, step
from load_lab.errors import LabError, UsageError
from load_lab.settings import load_settings
from load_lab.stack import http
from load_lab.stack.locks import measurement_lock
from load_lab.targets.app_process import ready
from load_lab.targets.credentials import credentials
from load_lab.targets.declared import DeclaredTarget, find_allowed
from load_lab.targets.mix import SAFE_METHODS, LeftOut, Mix, write_mix
from load_lab.targets.sources.described import ApiOperation, Described, Outcomes, divided
from load_lab.targets.sources.explorer import explore, templates_of
from load_lab.targets.sources.har import read_har
from load_lab.targets.sources.known_values import KnownValues
from load_lab.targets.sources.log import read_log
from load_lab.targets.sources.openapi import read_document
from load_lab.targets.sources.paths import Template
from load_lab.targets.sources.recorded import keep_answered
from load_lab.targets.sources.routes import read_routes, route_operation, route_templates
from load_lab.targets.sources.safety import Safety, stem_of_path
from load_lab.targets.sources.session import Session
from load_lab.targets.sources.traffic import collect
from load_lab.targets.sources.writes import explore_writes

Source = Literal["openapi", "routes", "log", "har"]

# A large API's document takes seconds to be written.
_DOCUMENT_SECONDS = 120
_MOST_NOTES = 10
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_NEAREST = 3


@dataclass(frozen=True)
class MixOptions:
    """`source` None: the OpenAPI document if the target file has one, else Django's routes. `file`
    is the log or HAR file, whose addresses are sent once unless `untried`. `named` and `leave_out`
    are added to those of the target's file.
    """

    source: Source | None = None
    file: Path | None = None
    most: int = 20
    seed: int = 0
    named: tuple[str, ...] = ()
    leave_out: tuple[str, ...] = ()
    keep_times: bool = False
    untried: bool = False


@dataclass(frozen=True)
class Plan:
    """The operations that an exploration would send, and what it leaves out."""

    target: str
    source: str
    operations: tuple[str, ...]
    left_out: tuple[LeftOut, ...]

    def document(self) -> dict[str, Any]:
        return {
            "target": self.target,
            "source": self.source,
            "operations": list(self.operations),
            "left_out": [each.model_dump() for each in self.left_out],
        }


# Asks the user; raises LabError if the plan's requests may not be sent.
Approve = Callable[[Plan], None]


@dataclass(frozen=True)
class MadeMix:
    """A mix that was written to `path`."""

    target: str
    path: Path
    mix: Mix

    def document(self) -> dict[str, Any]:
        """Return the mix as JSON data, without its addresses: they can be secrets."""
        operations = [
            {**each.model_dump(exclude={"requests", "headers"}), "addresses": len(each.requests)}
            for each in self.mix.operations
        ]
        return {
            "target": self.target,
            "file": str(self.path),
            "source": self.mix.source,
            "operations": operations,
            "left_out": [each.model_dump() for each in self.mix.left_out],
            "arrivals": len(self.mix.arrivals),
        }


def make_mix(
    name: str, options: MixOptions, approve: Approve, allowed_host: str | None = None
) -> MadeMix:
    """Find the requests of a target, and write its mix. `approve` sees what Django's routes have to
    be sent with the user's credentials: nobody described them as harmless.

    Raises:
        UsageError: the target or the source is unknown or invalid, or may not be loaded.
        LabError: the target does not answer, or the user does not approve.
    """
    target, source = _prepared(name, options, allowed_host)
    safety = _safety(target, options, source)
    with _started(target) as running:
        if source in _READERS:
            described = _described(source, running, options)
            if source == "routes" and (target.file.headers or target.file.auth):
                approve(_plan(name, described, safety))
            mix = _explored(running, described, options, safety)
        else:
            mix = _recorded(running, source, options, safety)
            mix = mix if options.untried else _answered(running, mix)
    write_mix(mix, target.mix_path)
    return MadeMix(name, target.mix_path, mix)


def plan_mix(name: str, options: MixOptions, allowed_host: str | None = None) -> Plan:
    """Return what `make_mix` would send.

    Raises:
        UsageError: as `make_mix`, or a log or HAR file is the source.
    """
    target, source = _prepared(name, options, allowed_host)
    if source not in _READERS:
        raise UsageError(
            f"--dry-run lists what a document or routes describe. With --{source}, --untried "
            "sends nothing."
        )
    with _started(target) as running:
        described = _described(source, running, options)
        return _plan(name, described, _safety(target, options, source))


def _prepared(
    name: str, options: MixOptions, allowed_host: str | None
) -> tuple[DeclaredTarget, Source]:
    target = find_allowed(name, allowed_host)
    return target, options.source or _default_source(target)


def _safety(target: DeclaredTarget, options: MixOptions, source: Source) -> Safety:
    file = target.file
    named, leave_out = (*options.named, *file.named), (*options.leave_out, *file.leave_out)
    # Only a document says what a body has to be.
    return Safety(named, leave_out, writes=file.writes and source == "openapi")


@contextmanager
def _started(target: DeclaredTarget) -> Iterator[DeclaredTarget]:
    """Yield the target, which runs for the block if the lab starts it; without its cache."""
    if target.file.start is None:
        yield target
        return
    file = target.file.model_copy(update={"cache": None})
    # A measurement may have started a target, which a second start would stop.
    with measurement_lock(), ready(replace(target, file=file), load_settings()) as running:
        yield running


def _default_source(target: DeclaredTarget) -> Source:
    if target.file.openapi:
        return "openapi"
    if target.file.manage:
        return "routes"
    raise UsageError(
        f'{target.path} names no source of requests. Add openapi = "/api/schema/", or manage = '
        f'["venv/bin/python", "manage.py"]. Or name a file: lab mix make {target.name} --log FILE'
    )


def _plan(name: str, described: Described, safety: Safety) -> Plan:
    reasons = {each: safety.reason(each) for each in described.operations}
    left_out = (LeftOut(name=each.name, reason=why) for each, why in reasons.items() if why)
    return Plan(
        name,
        described.source,
        tuple(each.name for each, why in reasons.items() if not why),
        (*described.left_out, *left_out),
    )


def _described(source: Source, target: DeclaredTarget, options: MixOptions) -> Described:
    described = _READERS[source](target)
    known = ({o.name, o.template, o.operation_id} for o in described.operations)
    names = set.union(*known, {each.name for each in described.left_out}) - {""}
    _require_known((*options.named, *options.leave_out), names)
    given = target.file.values
    names = {p.name for each in described.operations for p in each.parameters}
    remedy = f" For queries: lab mix make {target.name} --log FILE" if source == "routes" else ""
    for name in sorted(given.keys() - names):
        note(f"[values] has {name}, which no operation needs.{remedy}")
    headers = target.credentials.headers
    operations = tuple(each.with_values(given, headers) for each in described.operations)
    return replace(described, operations=operations)


def _require_known(names: Iterable[str], known: Collection[str]) -> None:
    """Check that names of operations are known.

    Raises:
        UsageError: one is not; the message has the nearest ones.
    """
    for name in names:
        if name not in known:
            nearest = get_close_matches(name, known, cutoff=0.4) or sorted(known)[:_NEAREST]
            raise UsageError(f"No operation is named {name!r}. Similar names: {', '.join(nearest)}")


def _from_routes(target: DeclaredTarget) -> Described:
    return Described(tuple(map(route_operation, _templates(target))), "Django's routes")


def _recorded(target: DeclaredTarget, source: Source, options: MixOptions, safety: Safety) -> Mix:
    """Return the mix of a log or HAR file; templates name its paths, or their shape does."""
    path, templates = options.file or Path(), _known_templates(target)
    with step(f"Reading {path}"):
        record = (
            read_har(path, target.url)
            if source == "har"
            else read_log(path, target.url, keep_times=options.keep_times)
        )
        mix = collect(str(path), record, templates, most=options.most, safety=safety)
    # Those of one path have the headers by which they differ behind it.
    names = {each.name.partition(" (")[0] for each in mix.operations}
    names |= {each.name for each in mix.left_out}
    _require_known((*options.named, *options.leave_out), names)
    return mix


def _answered(target: DeclaredTarget, mix: Mix) -> Mix:
    """Return what the target answers of a record."""
    target.require_ready()
    count = sum(len(each.requests) for each in mix.operations)
    with (
        step(f"Sending {count} addresses to {target.url}"),
        _client(target, httpx.Limits()) as client,
    ):
        answered = keep_answered(mix, client)
    for line in answered.lost[:_MOST_NOTES]:
        note(line)
    if others := answered.lost[_MOST_NOTES:]:
        note(f"Of {len(others)} other operations, addresses are left out, too.")
    return answered.mix


def _known_templates(target: DeclaredTarget) -> list[str | Template]:
    """Return the templates that name the paths of a log; without one, their shape does."""
    if target.file.openapi:
        operations = _document(target).operations
        reads = [each for each in operations if each.method in SAFE_METHODS]
        return [
            *(Template(each.method, each.template, views=each.views) for each in reads),
            *(each.template for each in operations),
        ]
    return list(_templates(target)) if target.file.manage else []


def _templates(target: DeclaredTarget) -> list[Template]:
    if not target.file.manage:
        raise UsageError(
            f'{target.path} does not say how to read the routes. Add manage = ["venv/bin/python", '
            '"manage.py"]; the command runs in the folder of that file.'
        )
    with step("Reading Django's routes"):
        return route_templates(read_routes(target.file.manage, target.folder, os.environ))


def _explored(
    target: DeclaredTarget, described: Described, options: MixOptions, safety: Safety
) -> Mix:
    """Send each operation's requests, and keep those that are answered with 2xx."""
    target.require_ready()
    operations = described.operations
    with (
        step(f"Sending requests of {len(operations)} operations to {target.url}"),
        _client(target, httpx.Limits()) as client,
        http.client(target.url) as stranger,
    ):
        known = KnownValues(templates_of(operations), client.base_url)
        outcomes = explore(
            operations,
            client,
            most=options.most,
            seed=options.seed,
            safety=safety,
            known=known,
            session=_session(target, client, stranger),
        )
    if safety.writes:
        outcomes |= _written(target, operations, known, outcomes, safety)
    found, left_out = divided(outcomes)
    left_out = (*described.left_out, *left_out)
    return Mix(source=described.source, operations=found, left_out=left_out)


def _session(
    target: DeclaredTarget, client: httpx.Client, stranger: httpx.Client
) -> Session | None:
    """Return what notices that a request ended the session, if the target has credentials."""
    if not target.credentials.headers:
        return None
    renew = (lambda: credentials(target.file, target.folder).headers) if target.file.auth else None
    return Session(client, stranger, renew)


def _written(
    target: DeclaredTarget,
    operations: Sequence[ApiOperation],
    known: KnownValues,
    reads: Outcomes,
    safety: Safety,
) -> Outcomes:
    """Send the operations that write, to objects that are created for it."""
    # A request that writes is sent once, so no connection may be one that the target closes.
    with (
        step(f"Writing to {target.url}"),
        _client(target, httpx.Limits(max_keepalive_connections=0)) as client,
    ):
        written = explore_writes(operations, client, known, reads, safety)
    if written.remaining:
        note(_remaining(written.remaining))
    return written.outcomes


def _remaining(counts: Mapping[str, int]) -> str:
    """Return which objects stay, without the names of all operations of a large API."""
    name, count = max(counts.items(), key=lambda each: each[1])
    others = sum(counts.values()) - count
    rest = f", and {others} of {len(counts) - 1} other operations" if others else ""
    return f"{count} objects of {name} remain{rest}: no DELETE of them was accepted."


def _client(target: DeclaredTarget, limits: httpx.Limits) -> httpx.Client:
    return http.client(target.url, dict(target.credentials.headers), limits=limits)


def _document(target: DeclaredTarget) -> Described:
    """Read the target's OpenAPI document, and the files beside it to which it refers."""
    location = target.file.openapi or ""
    if location.startswith("/") and not Path(location).is_file():
        location = target.url + location
    elif "://" not in location:
        location = str(target.folder / location)
    own = urlsplit(location)[:2]

    def load(address: str) -> str:
        parts = urlsplit(address)
        if parts[:2] != own or (
            address != location and stem_of_path(f"{parts.path}?{parts.query}")
        ):
            raise UsageError(f"{address} is not read: another host than {location}, or not safe.")
        return _fetch(address, target) if own[0] else _read(Path(address))

    with step(f"Reading {location}"):
        path = urlsplit(target.url).path.rstrip("/")
        return read_document(load(location), location, base_path=path, load=load)


def _fetch(url: str, target: DeclaredTarget) -> str:
    is_own = urlsplit(url).netloc == urlsplit(target.url).netloc
    headers = target.credentials.headers if is_own else {}
    try:
        response = http.get(url, timeout=_DOCUMENT_SECONDS, headers=headers)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise LabError(f"{url} does not answer ({error}). Start the target.") from None
    if response.status_code != httpx.codes.OK:
        raise UsageError(
            f"{url} answers {response.status_code}. Correct openapi in {target.path}, or its "
            "[headers]."
        )
    return response.text


def _read(path: Path) -> str:
    try:
        content = path.read_bytes()
        # PowerShell writes UTF-16, with a mark.
        return content.decode("utf-16" if content[:2] in _UTF_16_MARKS else "utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} can't be read: {error}.") from None


_READERS: dict[Source, Callable[[DeclaredTarget], Described]] = {
    "openapi": _document,
    "routes": _from_routes,
}
