"""The requests of an access log: Nginx's combined format, or the lab's JSON.

Apache's and Gunicorn's default formats, and formats that add fields to combined, are the same as
far as it is read.
"""

import gzip
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote, urlsplit

from lab_settings.messages import shorten
from pydantic import BaseModel, ConfigDict, ValidationError

from load_lab.console import note
from load_lab.errors import UsageError
from load_lab.targets.mix import LeftOut
from load_lab.targets.sources.described import Observed
from load_lab.targets.sources.paths import below
from load_lab.targets.sources.traffic import encoded, host_of

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
_ADDRESS = re.compile("https?://([^/?#]*)(.*)", re.DOTALL)
_EXPECTED = "Nginx's combined format, or the JSON of nginx/snippets/access-log.conf"
_GZIP_MAGIC = b"\x1f\x8b"
# A file without these is no text.
_LONGEST_LINE = 1 << 16
# Not one readable line among the first of a file: it has another format.
_FIRST_LINES = 1000
# So many say which host is the target's.
_HOST_LINES = 10_000


def read_log(
    path: Path, url: str = "", *, keep_times: bool = False
) -> Iterator[Observed | LeftOut]:
    """Yield the requests of a log, compressed with gzip or not; with their times if they are kept.

    `url` is the target's address: its path is not repeated, and requests that name another host are
    left out. If most requests of the log name one other host, that is the target's in production.

    Raises:
        UsageError: the file cannot be read, is empty, or has another format.
    """
    base_path, own_host = urlsplit(url).path.rstrip("/"), _own_host(path, url)
    count = broken = 0
    first, are_whole = "", True
    for count, line in enumerate(filter(bytes.strip, _lines(path)), start=1):
        parsed = _parse_json(line) if line.startswith(b"{") else _parse_combined(line)
        time = _unix_time(parsed.time) if parsed and keep_times else 0.0
        if parsed is None or time is None:
            broken += 1
            text = line.decode(errors="backslashreplace").strip()
            first = first or f"line {count}: {shorten(text)}"
            yield LeftOut(name="lines", reason="of no known format")
            if count == broken == _FIRST_LINES:
                break
        elif parsed.host not in ("", own_host):
            yield LeftOut(name=parsed.host, reason="another host", status=parsed.request.status)
        else:
            are_whole &= time.is_integer()
            yield _below(base_path, parsed.request)._replace(time=time if keep_times else None)
    _tell_broken(path, count, broken, first)
    if keep_times and are_whole:
        note("The log has whole seconds: its requests are spread evenly over each.")


def _tell_broken(path: Path, count: int, broken: int, first: str) -> None:
    if not count:
        raise UsageError(f"{path} is empty. Expected: {_EXPECTED}.")
    # A few lines may be cut off, or of another format before it was changed.
    if broken * 2 > count:
        raise UsageError(
            f"{path} has no access log of a known format. Expected: {_EXPECTED}. Its first other "
            f"one is {first}"
        )
    # Not in the mix, which people share: it may have a secret.
    if broken:
        note(f"{broken} of {count} lines could not be read; the first is {first}")


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
    request: Observed
    host: str = ""


def _below(base_path: str, request: Observed) -> Observed:
    """Return the request without the path of the target's address, if it has it."""
    path, question, query = request.target.partition("?")
    return request._replace(target=(below(base_path, path) or path) + question + query)


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
    return _Line(fields.time, Observed(method, target, fields.status))


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
    if parts := _ADDRESS.fullmatch(target):
        authority, rest = parts.groups()
        # Without user and password.
        host = shorten(encoded(host_of(target) or authority.rpartition("@")[2].lower()))
        target = rest if rest.startswith("/") else f"/{rest}"
    return _Line(time, Observed(method, encoded(target), int(status)), host)


def _unescaped(match: re.Match[str]) -> str:
    code, character = match.groups()
    return f"%{code}" if code else _CONTROLS.get(character, character)


def _own_host(path: Path, url: str) -> str:
    """Return the host that is the target's in a log with addresses: that of `url`, else the one
    that most of the first requests name; "" if there is none.
    """
    own = host_of(url) or ""
    # A pipe can't be read twice.
    if not path.is_file():
        return own
    lines = islice(_lines(path), _HOST_LINES)
    hosts = Counter(parsed.host for line in lines if (parsed := _parse_combined(line)))
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
