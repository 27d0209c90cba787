"""The rows of `lab bench`, as data: what is measured against what, and what has to be reached.

The one place of these numbers; docs/performance.md explains them.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

from lab.errors import UsageError
from lab.settings.presets import preset_assignments

Page = Literal["list", "detail", "healthz", "booking"]
# The server's own port; Nginx; Nginx's second listener, which serves the file. Rows that measure
# workers use the first: a proxy in front of both variants moves their ratio towards 1.
Entry = Literal["server", "nginx", "file"]
Figure = Literal["rate", "bytes", "time"]

# Clients at the server's own port: two sync workers work on one each, the others wait, so that no
# worker ever does.
_AT_SERVER = 4
# Kept-alive connections that Nginx answers from.
_AT_NGINX: dict[str, Any] = {"connections": 16, "held_back": True}


@dataclass(frozen=True)
class Way:
    """One way to give an answer: its settings over `article`, and the request that asks for it."""

    name: str
    page: Page
    settings: dict[str, str] = field(default_factory=dict)
    entry: Entry = "server"
    generator: Literal["wrk", "pgbench"] = "wrk"
    headers: dict[str, str] = field(default_factory=dict)
    # Ask as somebody who has the page: with the ETag that it has just now.
    known: bool = False
    connections: int = _AT_SERVER
    # Times the usual seconds: where there are a few answers per second, few would be counted.
    longer: int = 1
    # Nginx answers from its cache about as fast as wrk asks. With half of its CPU taken away it is
    # the limit; of two ways that are held back alike, the ratio is the same.
    held_back: bool = False

    @property
    def status(self) -> int:
        """What each answer has to be."""
        return 304 if self.known else 201 if self.page == "booking" else 200


@dataclass(frozen=True)
class Target:
    """A ratio of two ways that has to be reached; `floor` is what `--quick` asks for.

    For rates it is way ÷ over. For bytes it is over ÷ way: how many times fewer. For the time of
    an answer it is way ÷ over, too, and must not be more.
    """

    way: str
    over: str
    must_reach: float
    floor: float
    figure: Figure = "rate"


@dataclass(frozen=True)
class Row:
    """One line of the table. The bodies of the ways named in `equal` are the same bytes."""

    name: str
    path: str
    ways: tuple[Way, ...]
    targets: tuple[Target, ...]
    equal: tuple[str, ...] = ()
    # Whether bodies are compressed once for a version, which is looked at after the measurement.
    compressed_once: bool = False

    def way(self, name: str) -> Way:
        return next(way for way in self.ways if way.name == name)


# Seconds from `lab up` to the first 200; --quick, which judges ratios alone, has no such row.
START = "start"
START_SECONDS = 8.0
START_PATH = "`lab up` on the native engine with data loaded, to the first 200"

_FAST = {"LAB_DETAIL": "fast"}
_VERSIONED = {**_FAST, "LAB_REDIS_CACHE": "versioned"}
_WARM = {**_VERSIONED, "LAB_NGINX_CACHE": "protected"}
_BOOKING = {"LAB_BOOKING": "fast"}
_GZIP = {"Accept-Encoding": "gzip"}


def _warm(name: str, page: Page, headers: dict[str, str] | None = None) -> Way:
    return Way(name, page, _WARM, "nginx", headers=headers or {}, **_AT_NGINX)


def _file(page: Page) -> Way:
    return Way("file", page, _WARM, "file", **_AT_NGINX)


ROWS = (
    Row(
        "detail-fast",
        "hotel detail, no cache, `fast`",
        (Way("naive", "detail", longer=2), Way("fast", "detail", _FAST)),
        (Target("fast", "naive", 25, 18),),
        equal=("naive", "fast"),
    ),
    Row(
        "detail-versioned",
        "hotel detail, Redis `versioned`",
        (
            Way("page", "detail", {"LAB_REDIS_CACHE": "page"}),
            Way("versioned", "detail", _VERSIONED),
            Way("memory", "detail", {**_FAST, "LAB_LOCAL_CACHE": "lru"}),
        ),
        (Target("versioned", "page", 8, 6), Target("versioned", "memory", 0.45, 0.35)),
        equal=("page", "versioned", "memory"),
    ),
    Row(
        "nginx-list",
        "list, Nginx `protected` warm",
        (_warm("protected", "list"), _file("list")),
        (Target("protected", "file", 0.9, 0.75),),
        equal=("protected", "file"),
    ),
    Row(
        "nginx-detail",
        "hotel detail, Nginx `protected` warm",
        (_warm("protected", "detail"), _file("detail")),
        (Target("protected", "file", 0.75, 0.6),),
        equal=("protected", "file"),
    ),
    Row(
        "revalidation",
        "revalidation (304)",
        (
            Way("built", "detail", _FAST),
            Way("known", "detail", _FAST, known=True),
            Way("nothing", "healthz", _FAST),
        ),
        (Target("known", "nothing", 0.5, 0.4),),
    ),
    Row(
        "gzip",
        "compressed detail (gzip), Nginx `protected` warm",
        (_warm("plain", "detail"), _warm("gzip", "detail", _GZIP)),
        (
            Target("gzip", "plain", 2.4, 2.4, figure="bytes"),
            Target("gzip", "plain", 1.0, 0.85),
        ),
        equal=("plain", "gzip"),
        compressed_once=True,
    ),
    Row(
        "booking",
        "POST /api/booking/, `fast`, with all checks and Idempotency-Key",
        (
            Way("naive", "booking"),
            Way("fast", "booking", _BOOKING),
            # As many clients as there are workers.
            Way("pgbench", "booking", _BOOKING, generator="pgbench", connections=2),
        ),
        (Target("fast", "naive", 4, 3), Target("fast", "pgbench", 0.4, 0.2)),
    ),
)


def base_assignments() -> list[str]:
    """What every way's settings are laid over: two sync workers, no cache, no shedding."""
    return preset_assignments("article")


def chosen(names: list[str], *, check: bool) -> list[str]:
    """The names of the rows to measure, in the table's order; all of them when none is named.

    Raises:
        UsageError: a name is no row's.
    """
    known = [*(row.name for row in ROWS), *([] if check else [START])]
    for name in names:
        if name not in known:
            left_out = f" {START} is a time, and --quick judges ratios." if name == START else ""
            raise UsageError(f"There is no row {name}. Known: {', '.join(known)}.{left_out}")
    return [name for name in known if name in names or not names]


def row(name: str) -> Row:
    """The row of that name, which is one of `ROWS`."""
    return next(row for row in ROWS if row.name == name)
