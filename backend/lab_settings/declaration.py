"""Every setting of the lab: its name, type, values, default and description, declared once.

The lab and the backend parse their settings with it; `.env.example` is generated from it
(lab_settings/example.py).
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from lab_settings.kinds import (
    Direction,
    EngineChoice,
    Implementation,
    LocalCache,
    NginxCache,
    RedisCache,
    SecondServer,
    Server,
    Switch,
    Views,
)
from lab_settings.types import (
    Address,
    CpuList,
    PoolSize,
    Port,
    PortOfSeveral,
    Seconds,
    Ttl,
    is_whole_number,
)

# A program that reads settings: a service of the stack, k6, or the lab alone.
Reader = Literal["backend", "backend-metrics", "init", "nginx", "postgres", "k6", "lab"]


def _setting(
    default: Any, description: str, *, used_by: tuple[Reader, ...] = ("lab",), fixed: bool = False
) -> Any:
    """Return a setting's field. `used_by`: who reads it; the backend reports what it reads as
    active. `fixed`: it can't change while the stack runs, so no cell of an experiment sets it; the
    others apply by a reload, or by a restart of what reads them.
    """
    extra: Any = {"used_by": used_by, "fixed": fixed}
    return Field(default, description=description, json_schema_extra=extra)


class Declaration(BaseModel):
    """The settings. One that is not set has its default."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    LAB_ENGINE: EngineChoice = _setting(
        EngineChoice.AUTO,
        "auto uses docker if its engine is running and the images are available.",
        fixed=True,
    )
    LAB_REFERENCE_APP: Switch = _setting(
        Switch.ON,
        "off: without the hotel API, its Nginx, Postgres and Redis. Only what measures runs, for a "
        "target of your own (docs/own-app.md).",
        fixed=True,
    )
    LAB_SERVER: Server = _setting(
        Server.GUNICORN_SYNC,
        "Django's server. The first two use WSGI, the others ASGI.",
        used_by=("backend",),
    )
    LAB_WORKERS: Annotated[int, Field(ge=1, le=256)] = _setting(
        2, "Processes of the server.", used_by=("backend",)
    )
    LAB_THREADS: Annotated[int, Field(ge=1, le=1024)] = _setting(
        8,
        "Threads per process, where the server has them (gunicorn-gthread).",
        used_by=("backend",),
    )
    LAB_SECOND_SERVER: SecondServer = _setting(
        SecondServer.OFF,
        "A second ASGI server with one process. Nginx sends it the requests below "
        "/async/ and /ws/.",
        used_by=("backend", "nginx"),
    )
    LAB_DETAIL: Implementation = _setting(
        Implementation.NAIVE,
        "How hotel detail is read. naive: nested ModelSerializers with prefetch_related. fast: "
        "SQL that builds JSON. Both return the same bytes.",
        used_by=("backend",),
    )
    LAB_BOOKING: Implementation = _setting(
        Implementation.NAIVE,
        "How a booking is written. naive: ModelSerializer. fast: one SQL statement. Both make the "
        "same checks and return the same responses.",
        used_by=("backend",),
    )
    LAB_WORKBENCH: Switch = _setting(
        Switch.OFF,
        "Adds the routes below /workbench/ (backend/workbench) and loads their data.",
        used_by=("backend",),
    )
    LAB_VIEWS: Views = _setting(
        Views.SYNC,
        "Which variant of the workbench's views is used; every server can serve either.",
        used_by=("backend",),
    )
    LAB_WEBSOCKETS: Switch = _setting(
        Switch.OFF,
        "Pushes committed bookings to the clients of /ws/hotel/<id>/. Needs an ASGI "
        "server, LAB_SERVER's or LAB_SECOND_SERVER's.",
        used_by=("backend",),
    )
    LAB_LOCAL_CACHE: LocalCache = _setting(
        LocalCache.OFF,
        "Caches list and detail in each process: lru is functools.lru_cache for up to 600 s.",
        used_by=("backend",),
    )
    LAB_REDIS_CACHE: RedisCache = _setting(
        RedisCache.OFF,
        "Caches list and detail in Redis. page: cache_page(600), stale "
        "for up to 600 s. versioned: rendered bytes under a key with the version, "
        "never stale.",
        used_by=("backend",),
    )
    LAB_NGINX_CACHE: NginxCache = _setting(
        NginxCache.OFF,
        "Caches list and detail in Nginx. basic: the article's "
        "block. protected: locked, revalidated, stale for LAB_NGINX_CACHE_TTL + 2 s + the "
        "duration of one response at most; in an outage for 60 s more.",
        used_by=("backend", "nginx"),
    )
    LAB_NGINX_CACHE_TTL: Ttl = _setting(
        "1s",
        "How long Nginx may serve a page without revalidation (protected): 1s to 1h.",
        used_by=("backend", "nginx"),
    )
    LAB_LATENCY_MS: Annotated[int, Field(ge=0, le=10_000)] = _setting(
        0,
        "0..10000. Milliseconds added between backend and Postgres and between backend "
        "and client, one way. 0 removes the proxy. Redis is not delayed; "
        "docs/latency.md.",
        used_by=("backend",),
    )
    LAB_LATENCY_DIRECTION: Direction = _setting(
        Direction.OUTGOING,
        "Which packets of the backend are delayed: outgoing or incoming.",
        used_by=("backend",),
    )
    LAB_SHED: Switch = _setting(
        Switch.OFF,
        "Load shedding: requests beyond the target's capacity get 503 at once.",
        used_by=("backend", "nginx"),
    )
    LAB_NGINX_POST_RATE: Annotated[int, Field(ge=1, le=100_000)] = _setting(
        200,
        "POSTs per second that one client address may send before Nginx returns 429 (protected).",
        used_by=("nginx",),
    )
    LAB_DB_POOL: PoolSize = _setting(
        "off",
        "off | 1..1000. Size of psycopg's pool in each process; off means Django's own "
        "handling with LAB_CONN_MAX_AGE.",
        used_by=("backend",),
    )
    LAB_CONN_MAX_AGE: Annotated[int, Field(ge=0, le=86400)] = _setting(
        60,
        "Seconds that a database connection stays open without a pool; 0 opens one per "
        "request. An ASGI server runs each request in a new thread, so with ASGI it is "
        "always 0.",
        used_by=("backend",),
    )
    LAB_DB_MAX_CONNECTIONS: Annotated[int, Field(ge=10, le=10000)] = _setting(
        100, "Postgres's max_connections.", used_by=("backend", "postgres")
    )
    LAB_CLIENT_TIMEOUT: Seconds = _setting(
        60, "k6's request timeout. k6's default is also 60.", used_by=("k6",)
    )
    LAB_PROXY_TIMEOUT: Seconds = _setting(
        55, "Nginx's timeout for the backend, after which it returns 504.", used_by=("nginx",)
    )
    LAB_TIMEOUT: Seconds = _setting(
        50, "The server's timeout for a worker, which is then replaced.", used_by=("backend",)
    )
    LAB_DB_STATEMENT_TIMEOUT: Seconds = _setting(
        45, "Postgres cancels a statement; the API returns 503.", used_by=("backend",)
    )
    LAB_DB_LOCK_TIMEOUT: Seconds = _setting(
        20, "Postgres's timeout for a row lock; the API returns 503.", used_by=("backend",)
    )
    LAB_DB_CONNECT_TIMEOUT: Seconds = _setting(
        5,
        "Timeout for a connection to Postgres or from the pool, after which the API returns 503.",
        used_by=("backend",),
    )
    LAB_TARGET_CPUS: CpuList = _setting(
        "",
        "A CPU list such as 0-2,5, for Postgres, Redis, backend and Nginx. Empty: `lab` "
        "gives them half of the machine, plain `docker compose` does not pin.",
        used_by=("lab", "backend-metrics"),
        fixed=True,
    )
    LAB_LOAD_CPUS: CpuList = _setting(
        "",
        "The same for k6 and Prometheus, so that the generator takes no CPU time from the target.",
        used_by=("lab", "backend-metrics"),
        fixed=True,
    )
    LAB_BIND: Address = _setting(
        "127.0.0.1",
        "Address of Nginx and of the metrics ingress, which requires a password: "
        "0.0.0.0 for a load generator on another host. Everything else stays on 127.0.0.1 "
        "(SECURITY.md).",
        fixed=True,
    )
    LAB_HTTP_PORT: Port = _setting(8080, "Nginx: the target of every test.", fixed=True)
    LAB_NGINX_STATUS_PORT: Port = _setting(8081, "Nginx's stub_status.", fixed=True)
    LAB_BACKEND_PORT: Port = _setting(
        8001, "The backend itself: /healthz, /readyz, /lab/settings.", fixed=True
    )
    LAB_SECOND_SERVER_PORT: Port = _setting(8003, "LAB_SECOND_SERVER's server.", fixed=True)
    LAB_TOXIPROXY_PORT: PortOfSeveral = _setting(
        18474,
        "The first of toxiproxy's three ports: its API, delayed Postgres, "
        "delayed backend. Compose can't add numbers: set the last port in "
        "TOXIPROXY_BACKEND_PORT (docs/latency.md).",
        fixed=True,
    )
    LAB_METRICS_PORT: Port = _setting(
        8002, "The backend's /metrics, served by a separate process.", fixed=True
    )
    LAB_POSTGRES_PORT: Port = _setting(
        25432,
        "Postgres and Redis do not use their default ports, which may be in use on this machine. "
        "The ports are below 32768, where Linux's range of ephemeral ports begins.",
        fixed=True,
    )
    LAB_REDIS_PORT: Port = _setting(26380, "Redis.", fixed=True)
    LAB_PROMETHEUS_PORT: Port = _setting(
        9090, "Prometheus: its pages, and its receiver for k6 on this host.", fixed=True
    )
    LAB_PUSH_PORT: Port = _setting(
        9092,
        "The metrics ingress: an Nginx that accepts pushes from other hosts with a password.",
        fixed=True,
    )
    LAB_ALLOY_PUSH_PORT: Port = _setting(
        9091, "Alloy: its receiver for k6 on this host, on the docker engine.", fixed=True
    )
    LAB_GRAFANA_PORT: Port = _setting(3000, "Grafana: the dashboards.", fixed=True)
    LAB_EXPORTERS_PORT: PortOfSeveral = _setting(
        19100,
        "The first port of the native engine's exporters, which use one port each; up to 65500.",
        fixed=True,
    )
    LAB_DATA_SEED: Annotated[int, Field(ge=0, le=2**63 - 1)] = _setting(
        2026,
        "Seed of the data that `load_db` creates at the first start. The same seed and "
        "sizes give the same rows.",
        used_by=("init",),
        fixed=True,
    )
    LAB_DATA_HOTELS: Annotated[int, Field(ge=1, le=100_000)] = _setting(
        20, "Hotels; the list has about 350 bytes for each.", used_by=("init",), fixed=True
    )
    LAB_DATA_SUITES_PER_HOTEL: Annotated[int, Field(ge=1, le=10_000)] = _setting(
        100, "Suites of each hotel.", used_by=("init",), fixed=True
    )
    LAB_DATA_BOOKINGS_PER_SUITE: Annotated[int, Field(ge=0, le=700)] = _setting(
        45,
        "Bookings of each suite. Hotel detail has about 210 bytes for each: 45 make it "
        "900 to 1,000 KB.",
        used_by=("init",),
        fixed=True,
    )
    LAB_DATA_CUSTOMERS: Annotated[int, Field(ge=10, le=10_000_000)] = _setting(
        20_000, "Customers. Each booking has one to six of them.", used_by=("init",), fixed=True
    )
    LAB_DATA_POSTS: Annotated[int, Field(ge=100, le=100_000_000)] = _setting(
        1_000_000,
        "Posts of the workbench: 1,000,000 as in the source.",
        used_by=("init",),
        fixed=True,
    )

    @field_validator("*", mode="before")
    @classmethod
    def _check_digits(cls, value: Any, info: ValidationInfo) -> Any:
        """Reject what pydantic also reads as an integer, but other programs do not: 1_000, 5.0."""
        is_integer = cls.model_fields[str(info.field_name)].annotation is int
        if is_integer and isinstance(value, str) and not is_whole_number(value):
            raise ValueError("a valid integer of at most 18 digits, such as 100")
        return value

    def as_env(self) -> dict[str, str]:
        return {name: str(value) for name, value in self.model_dump().items()}

    def of_backend(self) -> dict[str, str]:
        """Return the settings that the backend reads, as environment variables."""
        values = self.as_env()
        return {name: values[name] for name in names_used_by("backend")}

    @property
    def is_stock(self) -> bool:
        """Whether the lab runs stock Django: everything measured is as in most projects."""
        implementations = {self.LAB_DETAIL, self.LAB_BOOKING}
        return (
            implementations == {Implementation.NAIVE}
            and self.pool_size is None
            and self.LAB_REDIS_CACHE is not RedisCache.VERSIONED
            and self.LAB_NGINX_CACHE is not NginxCache.PROTECTED
        )

    @property
    def is_delayed(self) -> bool:
        """Whether Postgres and the server are reached through toxiproxy."""
        return self.LAB_LATENCY_MS > 0

    @property
    def pool_size(self) -> int | None:
        """Size of psycopg's pool in each process; None without a pool."""
        return None if self.LAB_DB_POOL == "off" else int(self.LAB_DB_POOL)


def defaults() -> dict[str, str]:
    """Return every setting's default, as environment variables."""
    return Declaration().as_env()


def is_fixed(name: str) -> bool:
    """Return whether the setting can't change while the stack runs; false for an unknown one."""
    return name in Declaration.model_fields and bool(_facts(name)["fixed"])


def names_used_by(*readers: Reader) -> list[str]:
    """Return the names of the settings that one of these programs reads."""
    return [
        name for name in Declaration.model_fields if set(readers) & set(_facts(name)["used_by"])
    ]


def _facts(name: str) -> Any:
    return Declaration.model_fields[name].json_schema_extra
