"""The errors in the logs of an app and of Postgres, as facts without personal data.

An exception's class, its errno, SQLSTATE or the number of another database, and messages of a fixed
list. Of Postgres's primary messages those of conditions of the server, without what is quoted and
without digits; DETAIL, HINT, CONTEXT and STATEMENT are not read.
"""

import builtins
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

import psycopg

from load_lab.machine.observation import POSTGRES

_MOST_NAMED, _MOST_KINDS = 8, 1000


@dataclass(frozen=True)
class LoggedError:
    """An error in the log of `source`. `kind`: the exception's class, for Postgres the name of the
    SQLSTATE. `code`: "errno 28", an SQLSTATE, "MySQL 1205" or "Redis OOM", if there is one.
    """

    source: str
    kind: str
    code: str = ""
    message: str = ""
    count: int = 1


@dataclass(frozen=True)
class LoggedErrors:
    """The most frequent errors first, and how many kinds were left out."""

    errors: tuple[LoggedError, ...] = ()
    left_out: int = 0


NONE_LOGGED = LoggedErrors()
# Class, code and message.
_Fact = tuple[str, str, str]


def logged_errors(logs: Iterable[tuple[str, Iterable[bytes]]]) -> LoggedErrors:
    """Return the errors of logs, by the name of each source."""
    counts: Counter[tuple[str, _Fact]] = Counter()
    unknown: set[tuple[str, _Fact]] = set()
    for source, lines in logs:
        for fact in (postgres_errors if source == POSTGRES else tracebacks)(lines):
            if (source, fact) in counts or len(counts) < _MOST_KINDS:
                counts[source, fact] += 1
            elif len(unknown) < _MOST_KINDS:
                unknown.add((source, fact))
    most = counts.most_common(_MOST_NAMED)
    return LoggedErrors(
        tuple(LoggedError(source, *fact, count) for (source, fact), count in most),
        len(counts) - len(most) + len(unknown),
    )


# With log_line_prefix = '%m [%p] %e ' (postgres/postgresql.conf).
_OF_POSTGRES = re.compile(
    rb"\S+ \S+ \S+ \[\d+\] ([0-9A-Z]{5}) (?:ERROR|FATAL|PANIC):  (.*)", re.DOTALL
)
# SQLSTATEs of conditions of the server. The others are about values, and RAISE writes any text.
_OF_THE_SERVER = ("25", "40", "53", "54", "55P03", "57", "58")
_QUOTES = "\"'`«»“”‘’"
_QUOTED = re.compile(f"[{_QUOTES}](?:.*[{_QUOTES}]|.*)")
# And what could be an escape sequence.
_VALUE = re.compile(r"\S*@\S*|[\w.]*\d[\w.]*|[^ -~…]+")
_LONGEST_MESSAGE = 120


def postgres_errors(lines: Iterable[bytes]) -> Iterator[_Fact]:
    for line in lines:
        # Most lines are of another kind, or a message's next line.
        if b":  " in line and (found := _OF_POSTGRES.match(line)):
            state = found[1].decode()
            is_of_server = state.startswith(_OF_THE_SERVER)
            yield _name_of(state), state, _cleaned(found[2]) if is_of_server else ""


def _name_of(state: str) -> str:
    try:
        return psycopg.errors.lookup(state).__name__
    except KeyError:
        return "error"


def _cleaned(message: bytes) -> str:
    text = _QUOTED.sub("…", message.decode(errors="replace").strip())
    return _VALUE.sub("…", text)[:_LONGEST_MESSAGE]


# Rich's has no colon.
_HEADER = b"Traceback (most recent call last)"
_LINKS = (b"The above exception was the direct cause", b"During handling of the above exception")
# What compose, honcho and an exception group write in front of each line; the service's name.
_PREFIX = re.compile(rb"(?:\d\d:\d\d:\d\d )?([\w.-]*) *\| ?")
_MOST_PREFIXES = 5
_LAST_LINE = re.compile(rb'([A-Za-z_][\w.]{,150})(?:: (.*)|(?=[:"]?\s*$|"))', re.DOTALL)
_LOCALS = b".<locals>."
# Of classes outside modules; other words may begin a line of another program.
_SUFFIXES = ("Error", "Exception", "Exit", "Timeout", "Warning")
_LOWER_CASE = ("error", "timeout", "gaierror", "herror")
_GROUPS = "ExceptionGroup"
# Lines until the end of a traceback, and until what links it to the next one: others may write to
# the same file.
_LONGEST_TRACEBACK, _LONGEST_GAP = 2000, 50
_MOST_STREAMS, _MOST_OPEN, _LONGEST_CHAIN = 100, 100, 20


def tracebacks(lines: Iterable[bytes]) -> Iterator[_Fact]:
    """Yield what each of Python's tracebacks ends with, and before it its causes; each code or
    message of a chain once. Lines of several processes may be mixed.
    """
    streams: dict[bytes, _Stream] = {}
    for line in lines:
        if _HEADER in line:
            _, begin, json = line.partition(_HEADER)
            if b"\\n" in json:
                yield from tracebacks([begin + json.split(b"\\n")[0], *json.split(b"\\n")[1:]])
                continue
        elif not streams:
            continue
        name, text = _without_prefix(line)
        stream = streams.get(name) or _Stream()
        yield from stream.add(text)
        if stream.is_awaited and (name in streams or len(streams) < _MOST_STREAMS):
            streams[name] = stream
        else:
            streams.pop(name, None)
    for stream in streams.values():
        yield from stream.end()


def _without_prefix(line: bytes) -> tuple[bytes, bytes]:
    """Return the name of the service that wrote a line, and what it wrote."""
    name = b""
    for _ in range(_MOST_PREFIXES if b"|" in line else 0):
        if found := _PREFIX.match(line):
            name, line = name or found[1], line[found.end() :]
    return name, line.rstrip()


@dataclass
class _Stream:
    """The tracebacks of one service: `begun` ones have no last line yet."""

    begun: int = 0
    is_linked: bool = False
    chain: list[_Fact] = field(default_factory=list)
    lines: int = 0

    @property
    def is_awaited(self) -> bool:
        return self.begun > 0 or bool(self.chain)

    def add(self, line: bytes) -> Iterator[_Fact]:
        self.lines += 1
        if _HEADER in line:
            self.begun, self.lines = min(self.begun + 1, _MOST_OPEN), 0
        elif line.startswith(_LINKS):
            self.is_linked, self.lines = True, 0
        elif self.begun and not line.startswith(b" ") and (fact := _exception(line)):
            if not self.is_linked:
                yield from self.end()
            self.begun, self.is_linked, self.lines = self.begun - 1, False, 0
            if not fact[0].endswith(_GROUPS) and len(self.chain) < _LONGEST_CHAIN:
                self.chain.append(fact)
        elif self.lines > _LONGEST_TRACEBACK:
            self.begun = 0
        elif not self.begun and self.lines > _LONGEST_GAP:
            yield from self.end()

    def end(self) -> Iterator[_Fact]:
        """Yield what the exceptions of a chain tell; those that tell nothing only if all do."""
        # The first of those that tell the same is the cause.
        telling = {fact[1:]: fact for fact in reversed(self.chain) if any(fact[1:])}
        yield from telling.values() or dict.fromkeys((*self.chain[:1], *self.chain[-1:]))
        self.chain, self.is_linked = [], False


# Most of them are the same.
@lru_cache(100)
def _exception(line: bytes) -> _Fact | None:
    found = _LAST_LINE.match(line.replace(_LOCALS, b"."))
    if found is None:
        return None
    name, text = found[1].decode(), (found[2] or b"").decode(errors="replace")
    return (name, *_code_and_message(name, text)) if _is_class(name) else None


def _is_class(name: str) -> bool:
    module, _, last = name.rpartition(".")
    if module:
        return last.lstrip("_")[:1].isupper() or last in _LOWER_CASE
    known = getattr(builtins, name, None)
    is_builtin = isinstance(known, type) and issubclass(known, BaseException)
    return is_builtin or name.endswith((*_SUFFIXES, _GROUPS))


_ERRNO = re.compile(r"\[Errno (\d{1,3})\]")
# Python prints no number where a program raises them itself.
_ERRNO_OF = {
    "BrokenPipeError": 32,
    "ConnectionAbortedError": 103,
    "ConnectionResetError": 104,
    "ConnectionRefusedError": 111,
    "MemoryError": 12,
}
_REDIS = {"OutOfMemoryError": "OOM", "ReadOnlyError": "READONLY", "BusyLoadingError": "LOADING"}
_REDIS_PACKAGES = ("redis", "valkey")
_NUMBER_OF_MYSQL = re.compile(r"\((\d{4}), ")
_MYSQL_PACKAGES = ("MySQLdb", "pymysql", "django", "sqlalchemy")
# SQLAlchemy puts the driver's class in front.
_WRAPPED = re.compile(r"\([\w.]+\) ")
# Of SQLite, Postgres, Redis and Python, with the code of each that has one.
_MESSAGES = {
    "database is locked": "",
    "database table is locked": "",
    "database or disk is full": "",
    "disk I/O error": "",
    "attempt to write a readonly database": "",
    "unable to open database file": "",
    "can't start new thread": "",
    "sorry, too many clients already": "53300",
    "remaining connection slots are reserved": "53300",
    "the database system is starting up": "57P03",
    "the database system is shutting down": "57P03",
    "max number of clients reached": "Redis maxclients",
    "MISCONF": "Redis MISCONF",
}
# psycopg's messages have the server's behind the address, and django-redis the class.
_ANYWHERE = ("53300", "57P03", "Redis maxclients")


def _code_and_message(name: str, text: str) -> tuple[str, str]:
    package, last = name.partition(".")[0], name.rpartition(".")[2]
    plain = _WRAPPED.sub("", text, count=1)
    if last == "gaierror":
        return "gaierror", ""
    number = int(found[1]) if (found := _ERRNO.match(plain)) else _ERRNO_OF.get(name, 0)
    if number:
        return f"errno {number}", os.strerror(number)
    for message, code in _MESSAGES.items():
        if plain.startswith(message) or (code in _ANYWHERE and message in text):
            return code, message
    if package in _REDIS_PACKAGES and last in _REDIS:
        return f"Redis {_REDIS[last]}", ""
    if package in _MYSQL_PACKAGES and (found := _NUMBER_OF_MYSQL.match(plain)):
        return f"MySQL {found[1]}", ""
    return _sqlstate(package, last), ""


def _sqlstate(package: str, last: str) -> str:
    """Return the SQLSTATE of a class of psycopg or asyncpg, which has "Error" behind its name."""
    if package not in ("psycopg", "psycopg2", "asyncpg"):
        return ""
    names = (last, last.removesuffix("Error"))
    known = (getattr(psycopg.errors, name, None) for name in names)
    return next((state for each in known if (state := getattr(each, "sqlstate", None))), "")
