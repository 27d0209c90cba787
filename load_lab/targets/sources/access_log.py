"""A mix from an access log: Nginx's combined format, or the lab's JSON.

Apache's and Gunicorn's default formats, and formats that add fields to combined, are the same as
far as it is read.
"""

import gzip
import re
import zlib
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache, partial
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote, urlsplit

from lab_settings.messages import shorten
from pydantic import BaseModel, ConfigDict, ValidationError

from load_lab.errors import UsageError
from load_lab.targets.mix import Arrival, Mix
from load_lab.targets.sources.paths import Template
from load_lab.targets.sources.traffic import Recorded, Traffic, below, encoded

_COMBINED = re.compile(
    # address - user [time] "request" status …; Nginx writes a quote as \x22, Apache as \".
    r'\S+ \S+ [^\[]*\[([^\]]*)\] "((?:[^"\\]|\\.)*)" ([0-9]{3}) '
)
_TIMES: Final = ("%d/%b/%Y:%H:%M:%S %z", "%d/%b/%Y:%H:%M:%S.%f %z")
# Seconds since 1970, which Nginx calls $msec.
_SECONDS = re.compile(r"[0-9]{9,11}(\.[0-9]+)?")
_METHOD = re.compile("[A-Z]{1,20}")
_PROTOCOL = re.compile(r" HTTP/[0-9.]+$")
# Of Nginx, and of Apache.
_ESCAPED = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|(.))")
_CONTROLS = {"b": "%08", "t": "%09", "n": "%0A", "v": "%0B", "f": "%0C", "r": "%0D"}
_ADDRESS_PARTS = re.compile("https?://([^/?#]*)(.*)", re.DOTALL)
# A request line with an address, as a proxy gets it.
_ADDRESS = re.compile(rb'"[A-Z]{1,20} https?://(?:[^/" ?@]*@)?([^/" ?@]+)')
_EXPECTED = "Nginx's combined format, or the JSON of nginx/snippets/access-log.conf"
_GZIP_MAGIC = b"\x1f\x8b"
# A file without these is no text.
_LONGEST_LINE = 1 << 16
# Not one readable line among the first of a file: it has another format.
_FIRST_LINES = 1000


@dataclass(frozen=True)
class LogMix:
    """The mix of a log. `broken_lines` of its `lines` could not be read, the first of which is
    `first_broken`. `has_whole_seconds`: the log has no fractions, so the arrivals are spread evenly
    over their second.
    """

    mix: Mix
    lines: int
    broken_lines: int
    first_broken: str = ""
    has_whole_seconds: bool = False


def read_access_log(
    path: Path,
    url: str = "",
    *,
    templates: Sequence[str | Template] = (),
    most: int = 100,
    writes: bool = False,
    named: Sequence[str] = (),
    leave_out: Sequence[str] = (),
    keep_times: bool = False,
) -> LogMix:
    """Return the mix of a log, compressed with gzip or not: the weight of an operation is the
    number of its requests.

    `url` is the target's address: its path is not repeated, and requests that name another host are
    left out. If most requests of the log name one other host, that is the target's in production.

    A path without a template is named by its shape. At most `most` addresses per operation, drawn
    evenly. Without `writes` only GET and HEAD; a log has no bodies. `named` are operations that are
    in the mix although a word in them says that they write. With `keep_times` the mix has the
    arrivals, each with the address that was drawn next before it.

    Raises:
        UsageError: the file cannot be read, has another format, or no request that a load can send.
    """
    traffic = Traffic(templates, most=most, writes=writes, named=named, leave_out=leave_out)
    reading = _Reading(
        path, traffic, keep_times, urlsplit(url).path.rstrip("/"), _own_host(path, url)
    )
    reading.read()
    try:
        operations = traffic.operations()
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    mix = Mix(
        source=str(path),
        operations=operations,
        left_out=traffic.left_out(),
        arrivals=tuple(reading.arrivals()),
    )
    whole = keep_times and reading.has_whole_seconds
    return LogMix(mix, reading.lines, reading.broken, reading.first_broken, whole)


class _LabLine(BaseModel):
    """The fields that are read of the lab's JSON."""

    model_config = ConfigDict(strict=True)

    time: str
    method: str
    path: str
    status: int


class _Line(NamedTuple):
    """A request of a log; `host` if the log names it."""

    time: str
    recorded: Recorded
    host: str = ""


class _Reading:
    """Reads a log once, line by line."""

    def __init__(
        self, path: Path, traffic: Traffic, keep_times: bool, base_path: str, host: str
    ) -> None:
        self.lines = self.broken = 0
        self.first_broken = ""
        self.has_whole_seconds = True
        self._path, self._traffic, self._keep_times = path, traffic, keep_times
        self._base_path, self._host = base_path, host
        # Of each request in the mix: Unix time, and the place of its operation.
        self._times, self._places = array("d"), array("L")

    def read(self) -> None:
        for line in filter(bytes.strip, _lines(self._path)):
            self.lines += 1
            if not self._add(line):
                self.broken += 1
                text = line.decode(errors="backslashreplace").strip()
                self.first_broken = self.first_broken or f"line {self.lines}: {shorten(text)}"
                if self.lines == self.broken == _FIRST_LINES:
                    break
        if not self.lines:
            raise UsageError(f"{self._path} is empty. Expected: {_EXPECTED}.")
        # A few lines may be cut off, or of another format before it was changed.
        if self.broken * 2 > self.lines:
            raise UsageError(
                f"{self._path} has no access log of a known format. Expected: {_EXPECTED}. Its "
                f"first other one is {self.first_broken}"
            )

    def arrivals(self) -> Iterator[Arrival]:
        """Yield the arrivals in the order of their times."""
        positions, counts = self._traffic.positions(), Counter[int]()
        requests = []
        for place in self._places:
            requests.append(max(bisect_right(positions[place], counts[place]) - 1, 0))
            counts[place] += 1
        # Nginx's workers write their lines in any order.
        order = sorted(range(len(self._times)), key=self._times.__getitem__)
        sizes, seen = Counter(self._times), Counter[float]()
        for i in order:
            time = self._times[i]
            at = time - self._times[order[0]]
            if self.has_whole_seconds:
                at += seen[time] / sizes[time]
                seen[time] += 1
            yield Arrival(at=at, operation=self._places[i], request=requests[i])

    def _add(self, line: bytes) -> bool:
        """Add the request of a line; return whether it could be read."""
        parsed = _parse_json(line) if line.startswith(b"{") else _parse_combined(line)
        time = _unix_time(parsed.time) if parsed and self._keep_times else 0.0
        if parsed is None or time is None:
            return False
        if parsed.host not in ("", self._host):
            self._traffic.leave_out(parsed.host, "another host", parsed.recorded.status)
            return True
        target = below(self._base_path, parsed.recorded.target)
        place = self._traffic.add(parsed.recorded._replace(target=target))
        if place is not None and self._keep_times:
            self._times.append(time)
            self._places.append(place)
            self.has_whole_seconds &= time.is_integer()
        return True


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            is_compressed = file.peek(2).startswith(_GZIP_MAGIC)
            content = gzip.GzipFile(fileobj=file) if is_compressed else file
            yield from iter(partial(content.readline, _LONGEST_LINE), b"")
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"{path} cannot be read: {reason}.") from None


def _parse_json(line: bytes) -> _Line | None:
    try:
        fields = _LabLine.model_validate_json(line)
    except ValidationError:
        return None
    # Nginx's $uri is decoded.
    target = quote(fields.path, safe="/:@!$&'()*+,;=~")
    method = fields.method if _METHOD.fullmatch(fields.method) else ""
    return _Line(fields.time, Recorded(method, target, fields.status))


def _parse_combined(line: bytes) -> _Line | None:
    match = _COMBINED.match(line.decode("utf-8", errors="surrogateescape"))
    if not match:
        return None
    time, request, status = match.groups()
    # Anything can be sent instead of a request: "-", or the start of a TLS handshake.
    method, _, target = _PROTOCOL.sub("", request).partition(" ")
    if "\\" in target:
        target = _ESCAPED.sub(_unescaped, target)
    method = method if _METHOD.fullmatch(method) else ""
    host = ""
    if target.startswith(("http://", "https://")):
        parts = _ADDRESS_PARTS.fullmatch(target)
        # Without user and password.
        host = shorten(encoded(parts[1].rpartition("@")[2].lower())) if parts else ""
        target = parts[2] if parts and parts[2].startswith("/") else f"/{parts[2]}" if parts else ""
    return _Line(time, Recorded(method, encoded(target), int(status)), host)


def _unescaped(match: re.Match[str]) -> str:
    code, character = match.groups()
    return f"%{code}" if code else _CONTROLS.get(character, character)


def _own_host(path: Path, url: str) -> str:
    """Return the host that is the target's in a log with addresses: that of `url`, else the one
    that most of the requests name; "" if there is none.
    """
    own = urlsplit(url).netloc
    # What can't be read twice: a pipe.
    if not path.is_file():
        return own
    matches = map(_ADDRESS.search, _lines(path))
    hosts = Counter(match[1].decode(errors="replace").lower() if match else "" for match in matches)
    host, count = hosts.most_common(1)[0] if hosts else ("", 0)
    return own if own in hosts else host if count * 2 > hosts.total() else ""


@lru_cache(maxsize=1000)
def _unix_time(text: str) -> float | None:
    try:
        if "/" not in text:
            return (
                float(text)
                if _SECONDS.fullmatch(text)
                else datetime.fromisoformat(text).timestamp()
            )
        return datetime.strptime(text, _TIMES["." in text]).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
