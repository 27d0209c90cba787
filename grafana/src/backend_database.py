"""Backend and database: where do requests wait?"""

from grafana_foundation_sdk.builders.dashboard import Dashboard

from grafana.src import variables
from grafana.src.annotations import run_annotations
from grafana.src.page import Page
from grafana.src.panels import (
    LIMIT,
    Query,
    add_right_axis,
    draw_dashed,
    place_legend_right,
    rows,
    series,
    set_colours,
)
from grafana.src.queries import backend, caches, selection

TESTS = selection.variable_matcher()


def build() -> Dashboard:
    page = Page(
        "lab-backend-database",
        "Backend and database",
        "Where do requests wait: for a worker, a connection, a lock or a statement?",
        variables.tests(),
        annotations=run_annotations(TESTS),
    )
    _workers(page)
    _requests(page)
    _database(page)
    _statements(page)
    return page.dashboard


def _workers(page: Page) -> None:
    busy = series(Query(backend.IN_FLIGHT, "in flight"), Query(backend.WORKER_SLOTS, "slots"))
    page.add(
        set_colours(draw_dashed(busy, "slots"), {"slots": LIMIT}).axis_label("requests"),
        "Requests in flight",
        "Requests that Django is processing, and the maximum at the same time (workers × threads).",
        "short",
        (8, 9),
    )
    page.add(
        series(Query(backend.SATURATION, "saturation")).max(1),
        "Worker saturation",
        "Requests in flight by slots. At 100 % the next request waits in the accept queue.",
        "percentunit",
        (8, 9),
    )
    page.add(
        series(Query(backend.ACCEPT_QUEUE, "waiting")).axis_label("connections"),
        "Accept queue",
        "Connections that the kernel has completed and no worker has accepted yet.",
        "short",
        (8, 9),
    )


def _requests(page: Page) -> None:
    page.add(
        series(Query(caches.builds("route"), "{{route}}"), stacked=True),
        "Body builds",
        "Response bodies per second rendered from Postgres's rows, by route.",
        "ops",
        (8, 9),
    )
    page.add(
        series(
            Query(backend.abandoned_requests(), "abandoned (499)"),
            Query(backend.rejected_requests(), "{{status}}"),
            Query(backend.SHED, "shed by the backend"),
        ),
        "Abandoned and rejected requests",
        "Requests per second whose client disconnected before the response (499), and requests "
        "rejected at once: 429 by Nginx's rate limit, 503 by LAB_SHED or in an outage.",
        "reqps",
        (8, 9),
    )
    page.add(
        series(
            Query(backend.django_percentile(0.95), "Django p95"),
            Query(backend.upstream_percentile(0.95), "Nginx upstream p95"),
            log=True,
        ),
        "Time in the backend",
        "Django's response time, and the upstream response time in Nginx. The gap is the wait for "
        "a worker. Both are computed from buckets and accurate to a factor of about two.",
        "s",
        (8, 9),
    )


def _database(page: Page) -> None:
    connections = series(
        Query(backend.CONNECTIONS, "{{state}}"),
        Query(backend.CONNECTIONS_MAX, "maximum"),
        stacked=True,
    )
    page.add(
        set_colours(draw_dashed(connections, "maximum"), {"maximum": LIMIT}).axis_label(
            "connections"
        ),
        "Connections",
        "Connections to Postgres by state, and their maximum (LAB_DB_MAX_CONNECTIONS).",
        "short",
        (8, 10),
    )
    pool = series(
        Query(backend.POOL_WAITS, "waits"), Query(backend.POOL_WAITING, "requests waiting")
    )
    page.add(
        add_right_axis(pool, "requests waiting", "short"),
        "Pool waits",
        "Requests per second that waited for a connection of the pool (LAB_DB_POOL), and the "
        "number that wait at the same time. 0 without a pool.",
        "cps",
        (8, 10),
    )
    page.add(
        place_legend_right(
            series(Query(backend.LOCK_WAITERS, "waiting"), Query(backend.locks(), "{{mode}}"))
        ).axis_label("locks"),
        "Locks",
        "Lock requests that wait, and granted locks by mode. Bookings of one suite wait for its "
        "row by design.",
        "short",
        (8, 10),
    )


def _statements(page: Page) -> None:
    columns = [
        ("total", backend.statement_seconds(), "s"),
        ("calls", backend.statement_calls(), "short"),
        ("mean", backend.statement_mean(), "s"),
    ]
    table = rows(("statement",), columns, {"total": 90, "calls": 90, "mean": 90})
    page.add(
        table,
        "Slow statements",
        "The statements with the most total time in the time range, from pg_stat_statements. "
        "Includes setup and other tests in the range.",
        "short",
        (16, 10),
    )
    page.add(
        series(
            Query(backend.transactions("commit"), "committed"),
            Query(backend.transactions("rollback"), "rolled back"),
        ),
        "Transactions",
        "Transactions per second in the application's database. Rollbacks come from rejected "
        "bookings and cancelled statements.",
        "ops",
        (8, 10),
    )
