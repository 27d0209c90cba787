"""The rows of `lab bench`, as data: the variants that are compared, and the ratios to reach.

These numbers are defined only here; docs/performance.md explains them.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

from load_lab.errors import UsageError
from load_lab.settings.presets import preset_assignments

Page = Literal["list", "detail", "healthz", "booking"]
# The server's port; Nginx; Nginx's second listener, which serves the file. Rows that measure
# workers use the first: a proxy in front of both variants moves their ratio towards 1.
Entry = Literal["server", "nginx", "file"]
Metric = Literal["rate", "bytes", "time"]

# Clients at the server's port: two sync workers serve one each, the others wait, so that no worker
# is ever idle.
_AT_SERVER = 4
# Keep-alive connections to Nginx.
_AT_NGINX: dict[str, Any] = {"connections": 16, "throttled": True}


@dataclass(frozen=True)
class Variant:
    """One variant of a response: its settings on top of `article`, and the request for it."""

    name: str
    page: Page
    settings: dict[str, str] = field(default_factory=dict)
    entry: Entry = "server"
    generator: Literal["wrk", "pgbench"] = "wrk"
    headers: dict[str, str] = field(default_factory=dict)
    # Send the current ETag, like a client that has the page.
    conditional: bool = False
    connections: int = _AT_SERVER
    # Multiple of the usual seconds: with few responses per second, too few would be counted.
    duration_factor: int = 1
    # Nginx responds from its cache about as fast as wrk sends requests. With half of its CPU taken
    # away it is the limit; the ratio of two variants that are both throttled stays the same.
    throttled: bool = False

    @property
    def status(self) -> int:
        """Return the expected status of each response."""
        return 304 if self.conditional else 201 if self.page == "booking" else 200


@dataclass(frozen=True)
class Target:
    """A ratio of two variants with a limit; `floor` is the limit of `--quick`. A `goal` is what
    nobody has reached yet: it is shown, and missing it is no failure.

    For rates it is variant ÷ baseline. For bytes it is baseline ÷ variant: how many times fewer.
    For the time of a response it is also variant ÷ baseline, with a maximum instead of a minimum.
    """

    variant: str
    baseline: str
    must_reach: float
    floor: float
    metric: Metric = "rate"
    goal: float | None = None


@dataclass(frozen=True)
class Row:
    """One row of the table. The variants named in `equal` must have identical bodies."""

    name: str
    path: str
    variants: tuple[Variant, ...]
    targets: tuple[Target, ...]
    equal: tuple[str, ...] = ()
    # Whether to check, after the measurement, that a version's body is compressed once.
    compressed_once: bool = False

    def variant(self, name: str) -> Variant:
        return next(variant for variant in self.variants if variant.name == name)


# Seconds from `lab up` to the first 200. --quick checks only ratios, so it does not have this row.
START = "start"
START_SECONDS = 8.0
START_PATH = "`lab up` on the native engine with data loaded, to the first 200"

_FAST = {"LAB_DETAIL": "fast"}
_VERSIONED = {**_FAST, "LAB_REDIS_CACHE": "versioned"}
_WARM = {**_VERSIONED, "LAB_NGINX_CACHE": "protected"}
_BOOKING = {"LAB_BOOKING": "fast"}
_GZIP = {"Accept-Encoding": "gzip"}


def _warm(name: str, page: Page, headers: dict[str, str] | None = None) -> Variant:
    return Variant(name, page, _WARM, "nginx", headers=headers or {}, **_AT_NGINX)


def _file(page: Page) -> Variant:
    return Variant("file", page, _WARM, "file", **_AT_NGINX)


ROWS = (
    Row(
        "detail-fast",
        "detail, no cache, `fast`",
        (Variant("naive", "detail", duration_factor=2), Variant("fast", "detail", _FAST)),
        (Target("fast", "naive", 25, 18),),
        equal=("naive", "fast"),
    ),
    Row(
        "detail-versioned",
        "detail, Redis `versioned`",
        (
            Variant("page", "detail", {"LAB_REDIS_CACHE": "page"}),
            Variant("versioned", "detail", _VERSIONED),
            Variant("memory", "detail", {**_FAST, "LAB_LOCAL_CACHE": "lru"}),
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
        "detail, Nginx `protected` warm",
        (_warm("protected", "detail"), _file("detail")),
        (Target("protected", "file", 0.75, 0.6),),
        equal=("protected", "file"),
    ),
    Row(
        "revalidation",
        "revalidation (304)",
        (
            Variant("built", "detail", _FAST),
            Variant("known", "detail", _FAST, conditional=True),
            Variant("nothing", "healthz", _FAST),
        ),
        (Target("known", "nothing", 0.5, 0.4),),
    ),
    Row(
        "gzip",
        "compressed detail (gzip), Nginx `protected` warm",
        (_warm("plain", "detail"), _warm("gzip", "detail", _GZIP)),
        (
            Target("gzip", "plain", 2.4, 2.4, metric="bytes"),
            Target("gzip", "plain", 1.0, 0.85),
        ),
        equal=("plain", "gzip"),
        compressed_once=True,
    ),
    Row(
        "booking",
        "POST /api/booking/, `fast`, with all checks and Idempotency-Key",
        (
            Variant("naive", "booking"),
            Variant("fast", "booking", _BOOKING),
            # As many clients as there are workers.
            Variant("pgbench", "booking", _BOOKING, generator="pgbench", connections=2),
        ),
        (Target("fast", "naive", 3.4, 3, goal=4), Target("fast", "pgbench", 0.18, 0.15, goal=0.4)),
    ),
)


def base_assignments() -> list[str]:
    """Return the settings that all variants override: two sync workers, no cache, no shedding."""
    return preset_assignments("article")


def select_rows(names: list[str], *, check: bool) -> list[str]:
    """Return the names of the rows to measure, in the table's order; all if none is given.

    Raises:
        UsageError: a name is unknown.
    """
    known = [*(row.name for row in ROWS), *([] if check else [START])]
    for name in names:
        if name not in known:
            reason = f" {START} is a time, and --quick judges ratios." if name == START else ""
            raise UsageError(f"There is no row {name}. Known: {', '.join(known)}.{reason}")
    return [name for name in known if name in names or not names]


def row(name: str) -> Row:
    """Return the row of that name in `ROWS`."""
    return next(row for row in ROWS if row.name == name)
