"""Bottleneck: which part of the target fills up first, and what do requests wait for?"""

from grafana_foundation_sdk.builders.dashboard import Dashboard

from grafana.src import variables
from grafana.src.annotations import run_annotations
from grafana.src.page import Page
from grafana.src.panels import Query, add_right_axis, place_legend_right, series
from grafana.src.queries import load, selection, signals

TESTS = selection.variable_matcher()


def build() -> Dashboard:
    page = Page(
        "lab-bottleneck",
        "Bottleneck",
        "Which part of the target fills up first, and what do requests wait for?",
        variables.tests(),
        annotations=run_annotations(TESTS),
    )
    _shares(page)
    _queues(page)
    _requests(page)
    return page.dashboard


def _shares(page: Page) -> None:
    used = series(
        Query(signals.cpu_busy("target", TESTS), "target's CPUs"),
        Query(signals.full_share(TESTS), "busiest process, of one CPU"),
        Query(signals.slots_share(TESTS), "worker slots"),
        Query(signals.connections_share(TESTS), "Postgres's connections"),
        Query(signals.cpu_busy("load", TESTS), "load generator's CPUs"),
        Query(load.target_rate(TESTS), "arrivals/s"),
    )
    page.add(
        place_legend_right(add_right_axis(used.axis_soft_max(1), "arrivals/s", "reqps", "purple")),
        "Use of each resource",
        "Shares of what each resource has, and the arrival rate. What is full first limits the "
        "target, unless requests in it wait for something else: see the panels below. Requests "
        'beyond the worker slots wait in the server: see "Requests and where they wait".',
        "percentunit",
        (24, 10),
    )


def _queues(page: Page) -> None:
    waiting = series(
        Query(signals.seen("queued", TESTS), "not accepted"),
        Query(signals.seen("waited", TESTS), "for a CPU"),
        Query(signals.seen("throttled", TESTS), "{{service}} stopped by a quota"),
        Query(signals.seen("killed", TESTS), "{{service}} killed, per second"),
    )
    page.add(
        place_legend_right(waiting).axis_label("connections, threads"),
        "Waiting in the server",
        "Connections that the server has not accepted, its threads that wait for a CPU, and the "
        "time in which a CPU quota stopped a service, and processes killed for lack of memory.",
        "short",
        (12, 9),
    )
    sessions = series(Query(signals.seen("sessions", TESTS), "{{state}}"), stacked=True)
    page.add(
        place_legend_right(sessions).axis_label("sessions"),
        "Postgres's sessions",
        "By what they do: compute, wait for a lock or for a flush of the log, read, or hold a "
        "transaction open while the client does something else.",
        "short",
        (12, 9),
    )


def _requests(page: Page) -> None:
    page.add(
        place_legend_right(
            series(
                Query(signals.seen("in_flight", TESTS), "in the server"),
                Query(signals.seen("awaited", TESTS), "at {{dependency}}"),
            )
        ).axis_label("requests"),
        "Requests and where they wait",
        "Requests in the server, and how many of them await a response of a dependency.",
        "short",
        (12, 9),
    )
    threads = series(Query(signals.seen("threads", TESTS), "{{state}}"), stacked=True)
    page.add(
        place_legend_right(threads).axis_label("threads"),
        "Threads of the server",
        "By what they are at. `lock` is a lock of the process (Python's GIL, a pool), or an idle "
        "thread; `outside` waits for another program.",
        "short",
        (12, 9),
    )
