"""Load test: does the target keep up, how fast, and with which errors?"""

from typing import Any

from grafana_foundation_sdk.builders.dashboard import Dashboard
from grafana_foundation_sdk.builders.table import Panel as Table

from grafana.src import variables
from grafana.src.annotations import run_annotations
from grafana.src.page import Page
from grafana.src.panels import (
    BAD,
    GOOD,
    LIMIT,
    Query,
    add_right_axis,
    draw_dashed,
    draw_limit,
    heat_map,
    number,
    place_legend_right,
    rows,
    series,
    set_colours,
    set_reds,
)
from grafana.src.queries import load, selection, totals

TESTS = selection.variable_matcher()

# Title, description, unit and panel.
Stat = tuple[str, str, str, Any]


def build() -> Dashboard:
    page = Page(
        "lab-load-test",
        "Load test",
        "Does the target respond, how fast, and with which errors?",
        variables.tests(),
        annotations=run_annotations(TESTS),
    )
    _results(page)
    _rates(page)
    _times(page)
    _responses(page)
    return page.dashboard


def _results(page: Page) -> None:
    for title, description, unit, panel in (*_request_stats(), *_problem_stats()):
        page.add(panel, title, description, unit, (4, 4))


def _request_stats() -> tuple[Stat, ...]:
    return (
        (
            "Requests in total",
            "Responses so far, including failed ones, without setup; of several selected tests the "
            "sum.",
            "locale",
            number(Query(totals.total_requests(TESTS), ""), over_range=True),
        ),
        (
            "Responses per second",
            "Responses per second now, or at the end of the test.",
            "reqps",
            number(Query(load.achieved_rate(TESTS), "")),
        ),
        (
            "Goodput",
            "Successful responses within the limit (RESPONSE_TIME_BOUND, 1 s) per second, now or "
            "at the end of the test.",
            "reqps",
            number(Query(load.goodput(TESTS), "")),
        ),
    )


def _problem_stats() -> tuple[Stat, ...]:
    return (
        (
            "p95 in total",
            "95 % of all responses so far were faster. Red above the limit of 1 s.",
            "s",
            number(
                Query(totals.total_p95(TESTS), ""),
                (None, GOOD),
                (selection.MAX_SECONDS, BAD),
                over_range=True,
            ),
        ),
        (
            "Errors in total",
            "Share of failed responses so far. Red above the limit of 1 %.",
            "percentunit",
            number(
                Query(totals.total_error_ratio(TESTS), ""),
                (None, GOOD),
                (selection.MAX_ERROR_RATIO, BAD),
                over_range=True,
            ),
        ),
        (
            "Dropped in total",
            "Iterations that were due while no virtual user was free. Any drop makes the response "
            "times look better than they are.",
            "locale",
            number(
                Query(totals.total_dropped_iterations(TESTS), ""),
                (None, GOOD),
                (1, LIMIT),
                over_range=True,
            ),
        ),
    )


def _rates(page: Page) -> None:
    rates = series(
        Query(load.target_rate(TESTS), "target"),
        Query(load.achieved_rate(TESTS), "achieved"),
        Query(load.goodput(TESTS), "goodput"),
    )
    page.add(
        set_colours(
            draw_dashed(rates, "target"), {"target": LIMIT, "achieved": "blue", "goodput": GOOD}
        ),
        "Target rate, achieved rate and goodput",
        "Planned arrivals, responses, and successful responses within the limit, per second. Where "
        "the lines separate, the target (or the generator) is overloaded. A closed load such as "
        "the smoke test has no target rate.",
        "reqps",
        (12, 9),
    )
    users = series(
        Query(load.virtual_users(TESTS), "in use"),
        Query(load.created_virtual_users(TESTS), "allocated"),
    )
    page.add(
        draw_dashed(users, "allocated").axis_label("virtual users"),
        "Virtual users",
        "Virtual users in use, and those that k6 has allocated. A rising number at a constant rate "
        "means longer response times.",
        "short",
        (6, 9),
    )
    page.add(
        set_colours(series(Query(load.dropped_iterations(TESTS), "dropped")), {"dropped": LIMIT}),
        "Dropped iterations",
        "Iterations per second that were never sent, because no virtual user was free.",
        "cps",
        (6, 9),
    )


def _times(page: Page) -> None:
    percentiles = series(
        *(Query(load.percentile(TESTS, p / 100), f"p{p}") for p in (50, 95, 99)), log=True
    )
    page.add(
        draw_limit(percentiles, ".*", selection.MAX_SECONDS),
        "Response times",
        "Percentiles over time, from k6's native histograms, accurate to one bucket (10 %). The "
        "dashed line is the limit.",
        "s",
        (12, 10),
    )
    page.add(
        heat_map(load.heat_rows(TESTS)),
        "Response time heat map",
        "Responses per second by response time; the scale below has the colours. Two bands mean "
        "two kinds of responses, such as cached and uncached ones, which percentiles hide.",
        "s",
        (12, 10),
    )
    apart = series(
        Query(load.percentile_of(TESTS, 0.95, expected=True), "p95 of successes"),
        Query(load.percentile_of(TESTS, 0.95, expected=False), "p95 of failures"),
        log=True,
    )
    page.add(
        set_colours(apart, {"p95 of successes": GOOD, "p95 of failures": BAD}),
        "Successes and failures apart",
        "Fast failures make percentiles of all responses look better than those of the successes.",
        "s",
        (8, 9),
    )
    page.add(
        place_legend_right(
            series(*(Query(load.phase(name, TESTS), text) for name, text in _PHASES), stacked=True)
        ),
        "Phases of a request",
        "Mean times of k6's phases. `waiting` is the target's time to the first byte; the wait for "
        "a free connection (blocked) and the connection are before it, and not in the response "
        "time.",
        "s",
        (8, 9),
    )
    page.add(
        place_legend_right(series(Query(load.checks(TESTS), "{{check}}")).max(1)),
        "Checks over time",
        "Share of each k6 check that passed so far. The smoke test also checks response bodies.",
        "percentunit",
        (8, 9),
    )


_PHASES = (
    ("blocked", "blocked"),
    ("connecting", "connecting"),
    ("tls_handshaking", "TLS"),
    ("sending", "sending"),
    ("waiting", "waiting"),
    ("receiving", "receiving"),
)


def _responses(page: Page) -> None:
    errors = series(
        Query(load.errors_by_status(TESTS), "{{status}} {{error_code}}"),
        Query(load.error_ratio(TESTS), "share"),
        bars=True,
    )
    page.add(
        add_right_axis(set_reds(errors), "share", "percentunit", LIMIT),
        "Errors by status",
        "Failed responses per second, by status and k6's error code; status 0 means that no "
        "response arrived. The line is their share of all responses.",
        "reqps",
        (10, 10),
    )
    page.add(
        _routes(),
        "By route, in total",
        "Totals so far, by route; of several selected tests the sum.",
        "short",
        (14, 10),
    )


def _routes() -> Table:
    columns = [
        ("requests", totals.total_requests(TESTS, "name"), "locale"),
        ("p50", totals.total_percentile(TESTS, 0.5, "name"), "s"),
        ("p95", totals.total_percentile(TESTS, 0.95, "name"), "s"),
        ("p99", totals.total_percentile(TESTS, 0.99, "name"), "s"),
        ("in time", totals.total_in_time_ratio(TESTS, "name"), "percentunit"),
        ("errors", totals.total_error_ratio(TESTS, "name"), "percentunit"),
    ]
    return rows(
        ("name",),
        columns,
        {"name": 140, **dict.fromkeys((title for title, _, _ in columns), 80)},
    )
