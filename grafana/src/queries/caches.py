"""Requests and hits of each cache layer."""

from grafana.src.queries.counters import counter_rate, scraped_rate
from grafana.src.queries.selection import LIKE_SERVICES, WINDOW
from load_lab.metrics.queries import (
    CACHE_DURATION,
    CACHE_STATUS,
    STALENESS,
    STALENESS_UNSEEN,
    percentile_of,
    rate,
)

# Nginx answered these without the backend, or after the backend confirmed the cached page.
_NGINX_HITS = 'cache=~"HIT|STALE|UPDATING|REVALIDATED"'
DATABASE = 'datname="hotel"'


def nginx_hit_ratio() -> str:
    """Return the hit ratio of the requests that used Nginx's cache."""
    lookups = scraped_rate('lab_nginx_requests_total{cache!="-"}') + " > 0"
    hits = scraped_rate(f"lab_nginx_requests_total{{{_NGINX_HITS}}}")
    return f"({hits} or 0 * ({lookups})) / ({lookups})"


def backend_hit_ratio() -> str:
    """Return the hit ratio of the GETs that used a cache of the backend, by layer."""
    lookups = f"{backend_cache_lookups()} > 0"
    hits = scraped_rate('lab_cache_answers_total{outcome="hit"}', "layer")
    return f"({hits} or 0 * ({lookups})) / ({lookups})"


def postgres_hit_ratio() -> str:
    """Return the share of blocks that Postgres found in its buffers."""
    hits = f"sum(rate(pg_stat_database_blks_hit{{{DATABASE}}}[{WINDOW}]))"
    reads = f"sum(rate(pg_stat_database_blks_read{{{DATABASE}}}[{WINDOW}]))"
    return f"{hits} / ({hits} + {reads} > 0)"


def nginx_requests() -> str:
    return scraped_rate("lab_nginx_requests_total")


def upstream_requests() -> str:
    """Return requests/s that Nginx forwarded."""
    return scraped_rate("lab_nginx_upstream_seconds_count")


def backend_requests() -> str:
    """Return requests/s that Django answered."""
    return scraped_rate('lab_http_requests_total{service="backend"}')


def backend_cache_lookups() -> str:
    return scraped_rate("lab_cache_answers_total", "layer")


def builds(by: str = "") -> str:
    """Return bodies/s built from Postgres's rows."""
    return scraped_rate("lab_body_builds_total", by)


def cache_statuses(tests: str) -> str:
    """Return responses/s by X-Cache-Status."""
    return f"{counter_rate(CACHE_STATUS, tests, 'cache_status', LIKE_SERVICES)} > 0"


def duration_by_status(tests: str) -> str:
    return percentile_of(rate(CACHE_DURATION, tests, LIKE_SERVICES.duration), 0.95, "cache_status")


def unseen_bookings(tests: str) -> str:
    """Return bookings/s that no page showed within the limit of the staleness probe."""
    return counter_rate(STALENESS_UNSEEN, tests, window=LIKE_SERVICES)


def staleness(tests: str, quantile: float) -> str:
    """Return the age of the pages that readers get, in seconds."""
    return percentile_of(rate(STALENESS, tests, LIKE_SERVICES.duration), quantile)


def redis_memory() -> str:
    return 'sum(redis_memory_used_bytes{service="redis"})'
