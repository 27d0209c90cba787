"""Cache layers: how much of the load does each answer, and how old are the pages?"""

from grafana_foundation_sdk.builders.dashboard import Dashboard

from grafana.src import variables
from grafana.src.annotations import run_annotations
from grafana.src.page import Page
from grafana.src.panels import (
    BAD,
    Query,
    add_right_axis,
    place_legend_right,
    series,
)
from grafana.src.queries import caches, load, selection

TESTS = selection.variable_matcher()
_UNSEEN = "never shown"


def build() -> Dashboard:
    page = Page(
        "lab-cache-layers",
        "Cache layers",
        "Which layer answers how much of the load, and how old are the pages?",
        variables.tests(),
        annotations=run_annotations(TESTS),
    )
    _layers(page)
    _responses(page)
    _stores(page)
    return page.dashboard


def _layers(page: Page) -> None:
    ratios = series(
        Query(caches.nginx_hit_ratio(), "Nginx"),
        Query(caches.backend_hit_ratio(), "{{layer}}"),
        Query(caches.postgres_hit_ratio(), "Postgres's buffers"),
    )
    page.add(
        place_legend_right(ratios.max(1)),
        "Hit ratio by layer",
        "Hits as a share of the lookups in each layer. Disabled layers are not drawn. Nginx's hits "
        "include stale and revalidated pages; Postgres's are blocks, not requests.",
        "percentunit",
        (12, 10),
    )
    requests = series(
        Query(load.achieved_rate(TESTS, selection.LIKE_SERVICES), "k6"),
        Query(caches.nginx_requests(), "Nginx"),
        Query(caches.upstream_requests(), "forwarded by Nginx"),
        Query(caches.backend_requests(), "Django"),
        Query(caches.backend_cache_lookups(), "cache {{layer}}"),
        Query(caches.builds(), "built from Postgres"),
    )
    page.add(
        place_legend_right(requests),
        "Requests by layer",
        "From the client to Postgres. The gap between two lines is what the outer layer answered.",
        "reqps",
        (12, 10),
    )


def _responses(page: Page) -> None:
    page.add(
        place_legend_right(
            series(Query(caches.cache_statuses(TESTS), "{{cache_status}}"), stacked=True)
        ),
        "Responses by X-Cache-Status",
        "The header that Nginx sends, as recorded by k6. NONE: Nginx's cache was not used.",
        "reqps",
        (12, 10),
    )
    page.add(
        place_legend_right(
            series(Query(caches.duration_by_status(TESTS), "{{cache_status}}"), log=True)
        ),
        "p95 by X-Cache-Status",
        "95th percentile of response times, for hits, misses and other cache statuses.",
        "s",
        (12, 10),
    )


def _stores(page: Page) -> None:
    ages = series(
        *(Query(caches.staleness(TESTS, p / 100), f"p{p}") for p in (50, 99)),
        Query(caches.unseen_bookings(TESTS), _UNSEEN),
    )
    ages = add_right_axis(ages, _UNSEEN, "cps", BAD)
    page.add(
        ages.no_value("Measured only by SCENARIO=staleness"),
        "Age of stale responses",
        "Time from a booking until the page shows it. Red: bookings per second that the page did "
        "not show within STALENESS_BOUND; they have no age. Measured only by SCENARIO=staleness.",
        "s",
        (8, 8),
    )
    page.add(
        series(Query(caches.builds("route"), "{{route}}")),
        "Bodies built, by route",
        "Response bodies per second rendered from Postgres's rows: the work that caches save.",
        "ops",
        (8, 8),
    )
    page.add(
        series(Query(caches.redis_memory(), "Redis")),
        "Redis memory",
        "Memory in use. At its limit Redis evicts keys, and the hit ratio falls.",
        "bytes",
        (8, 8),
    )
