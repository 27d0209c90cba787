"""Compare: is one test better than another?

Both tests are shifted with `offset` to start at midnight of 2000-01-01, so that the time axis shows
the time since the start in every version of Grafana.
"""

from collections.abc import Callable
from functools import partial

from grafana_foundation_sdk.builders.dashboard import Dashboard, DashboardLink

from grafana.src import variables
from grafana.src.annotations import comparison_annotations
from grafana.src.page import TAG, Page, link
from grafana.src.panels import (
    SMALL_SHARE,
    Query,
    draw_limit,
    rows,
    series,
    set_colours,
)
from grafana.src.queries import caches, comparison, load, selection, signals

_SIDES = {"A": "a", "B": "b"}
_COLOURS = {"A": "blue", "B": "orange"}
_NUMBERS = {
    "start": comparison.start_offset,
    "from": comparison.time_before,
    "to": comparison.time_after,
}


def build() -> Dashboard:
    page = Page(
        "lab-compare",
        "Compare",
        "Two tests side by side, from their start: which is faster, and what does it use?",
        [
            variables.compared_run("testid_a", "test A", comparison.all_tests()),
            variables.compared_run("testid_b", "test B", comparison.other_tests()),
            *(
                variables.hidden_number(f"{name}_{side}", expr(side))
                for side in "ab"
                for name, expr in _NUMBERS.items()
            ),
        ],
        annotations=comparison_annotations(_SIDES),
        links=[_link_to(name, side) for name, side in _SIDES.items()],
        # The links with range and tests lead to the other dashboards.
        tag=f"{TAG}-compare",
        time=("2000-01-01T00:00:00.000Z", "2000-01-01T00:05:00.000Z"),
    )
    page.dashboard.timezone("utc")
    _results(page)
    _load(page)
    _cost(page)
    return page.dashboard


def _link_to(name: str, side: str) -> DashboardLink:
    times = f"from=${{from_{side}}}&to=${{to_{side}}}"
    return link(f"Load test of {name}", f"/d/lab-load-test?var-testid=${{testid_{side}}}&{times}")


def _both(expr: Callable[[str], str]) -> list[Query]:
    """Return the same query for both tests."""
    return [
        Query(
            comparison.align_to_start(expr(selection.variable_matcher(f"testid_{side}")), side),
            name,
        )
        for name, side in _SIDES.items()
    ]


def _results(page: Page) -> None:
    columns = [
        ("requests", comparison.REQUESTS_SO_FAR, "locale"),
        ("p50", comparison.percentile_so_far(0.5), "s"),
        ("p95", comparison.percentile_so_far(0.95), "s"),
        ("p99", comparison.percentile_so_far(0.99), "s"),
        ("in time", comparison.IN_TIME_SO_FAR, "percentunit"),
        ("errors", comparison.ERRORS_SO_FAR, "percentunit"),
    ]
    page.add(
        rows(("test", "testid"), columns, {"test": 60, "testid": 340}, by_key=True),
        "Totals",
        "Totals of each test, without setup. Compare tests of the same machine, profile and rate.",
        "short",
        (24, 5),
    )


def _load(page: Page) -> None:
    for title, description, unit, expr in (
        (
            "Achieved rate",
            "Responses per second, from the start of each test.",
            "reqps",
            load.achieved_rate,
        ),
        (
            "Goodput",
            "Successful responses within the limit per second, from the start of each test.",
            "reqps",
            load.goodput,
        ),
    ):
        page.add(set_colours(series(*_both(expr)), _COLOURS), title, description, unit, (12, 9))
    for quantile, name in ((0.5, "p50"), (0.95, "p95")):
        panel = series(*_both(partial(load.percentile, quantile=quantile)), log=True)
        page.add(
            draw_limit(set_colours(panel, _COLOURS), ".*", selection.MAX_SECONDS),
            name,
            f"{name} from the start of each test. The dashed line is the limit.",
            "s",
            (12, 9),
        )


def _cost(page: Page) -> None:
    for title, description, unit, expr in (
        (
            "Errors",
            "Share of failed responses, from the start of each test.",
            "percentunit",
            load.error_ratio,
        ),
        (
            "Target's CPU",
            "Share of the target's CPUs in use by all programs while each test ran.",
            "percentunit",
            lambda tests: signals.cpu_busy("target", tests),
        ),
        (
            "Bodies built",
            "Response bodies per second rendered from Postgres's rows: lower where caches "
            "answered.",
            "ops",
            lambda tests: comparison.limit_to_runtime(caches.builds(), tests),
        ),
    ):
        panel = series(*_both(expr))
        if unit == "percentunit":
            panel.axis_soft_max(SMALL_SHARE)
        page.add(set_colours(panel, _COLOURS), title, description, unit, (8, 9))
