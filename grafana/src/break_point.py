"""Break point: at which rate is a limit exceeded, and by the target or the generator?"""

from grafana_foundation_sdk.builders.dashboard import Dashboard

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
    number,
    series,
    set_colours,
)
from grafana.src.queries import knee, load, selection, signals, totals
from grafana.src.scatter import Axes, Scatter, XYSeries, scatter

TEST = selection.variable_matcher()
_ARRIVALS = "arrivals per second"
# Metrics that are drawn over the arrival rate, with their limits.
LIMITED = (
    (load.percentile(TEST, 0.95), selection.MAX_SECONDS),
    (load.error_ratio(TEST), selection.MAX_ERROR_RATIO),
)


def build() -> Dashboard:
    page = Page(
        "lab-break-point",
        "Break point",
        "At which arrival rate is a limit exceeded, and is the target the bottleneck?",
        variables.planned_test(),
        annotations=run_annotations(TEST),
    )
    _results(page)
    _curves(page)
    _cpu(page)
    return page.dashboard


def _results(page: Page) -> None:
    for title, description, unit, panel in (
        (
            "Broke at",
            "The highest rate sustained, of the verdict. During the test, and of a k6 that no lab "
            "started: the lowest arrival rate at which p95 exceeds 1 s or errors exceed 1 %, and "
            "still do 5 s and 10 s later.",
            "reqps",
            number(Query(knee.broke_at(TEST), ""), over_range=True).no_value("not reached"),
        ),
        (
            "Best goodput",
            "Highest number of successful responses within the limit per second, of any 5 s, as in "
            "the verdict.",
            "reqps",
            number(Query(knee.best_goodput(TEST), ""), over_range=True),
        ),
        (
            "Generator CPU",
            "Share of the generator's CPUs in use by all programs at the break, as in the verdict; "
            "without a break the highest of any 5 s. From 90 % on, the break shows the generator's "
            "limit, not the target's.",
            "percentunit",
            number(Query(knee.generator_cpu(TEST), ""), (None, GOOD), (0.9, BAD), over_range=True),
        ),
        (
            "Dropped in total",
            "Iterations that were due while no virtual user was free. After the break: all virtual "
            "users were waiting for the target.",
            "locale",
            number(
                Query(totals.total_dropped_iterations(TEST), ""),
                (None, GOOD),
                (1, LIMIT),
                over_range=True,
            ),
        ),
    ):
        page.add(panel, title, description, unit, (6, 4))


def _curves(page: Page) -> None:
    page.add(
        _over_rate(*LIMITED[0], "p95", log=True),
        "p95 over the arrival rate",
        "Each point covers 5 s of the test or more, red above the limit of 1 s (horizontal line). "
        'The vertical line is "Broke at".',
        "s",
        (12, 12),
    )
    page.add(
        _over_rate(*LIMITED[1], "errors"),
        "Errors over the arrival rate",
        "Share of failed responses, red above the limit of 1 % (horizontal line). The vertical "
        'line is "Broke at".',
        "percentunit",
        (12, 12),
    )


def _over_rate(metric: str, limit: float, name: str, *, log: bool = False) -> Scatter:
    rate = load.target_rate(TEST)
    above = f"{name} above the limit"
    columns = {
        "rate": rate,
        name: f"({metric}) <= {limit}",
        above: points_above(metric, limit),
        "limit": f"0 * {rate} + {limit}",
        "rate at the break": knee.broke_at(TEST),
        "broke at": f"({metric}) and on () {rate}",
    }
    plots = [
        XYSeries("rate", name, GOOD),
        XYSeries("rate", above, BAD),
        XYSeries("rate", "limit", LIMIT, line=True),
        XYSeries("rate at the break", "broke at", "purple", line=True),
    ]
    return scatter(columns, plots, Axes(_ARRIVALS, name, log))


def points_above(metric: str, limit: float) -> str:
    return f"({metric}) > {limit}"


def _cpu(page: Page) -> None:
    columns = {
        "rate": load.target_rate(TEST),
        "generator": f"({signals.cpu_busy('load', TEST)}) and on () {load.target_rate(TEST)}",
        "target": f"({signals.cpu_busy('target', TEST)}) and on () {load.target_rate(TEST)}",
    }
    plots = [XYSeries("rate", "generator", LIMIT), XYSeries("rate", "target", "blue")]
    page.add(
        scatter(columns, plots, Axes(_ARRIVALS, "CPU in use")),
        "CPU over the arrival rate",
        "Share of each side's CPUs in use by all programs. With the generator near 100 % at the "
        "break, the generator is the limit.",
        "percentunit",
        (8, 11),
    )
    achieved = series(Query(load.achieved_share(TEST), "achieved ÷ due"))
    page.add(
        draw_limit(achieved.axis_soft_max(1), "achieved ÷ due", selection.MIN_ACHIEVED),
        "Achieved ÷ due",
        "Responses as a share of those due: arrivals of 2 s before (the limit and a push). Of "
        "journeys: iterations that were not dropped. Below the dashed line, the third limit of the "
        "verdict is exceeded.",
        "percentunit",
        (8, 11),
    )
    panel = series(
        Query(load.target_rate(TEST), "target"),
        Query(load.achieved_rate(TEST), "achieved"),
        Query(load.goodput(TEST), "goodput"),
        Query(load.percentile(TEST, 0.95), "p95"),
    )
    panel = add_right_axis(panel, "p95", "s", BAD)
    panel = set_colours(panel, {"target": LIMIT, "achieved": "blue", "goodput": GOOD})
    page.add(
        draw_dashed(draw_limit(panel, "p95", selection.MAX_SECONDS), "target"),
        "Rates over time",
        "The same test over time. Achieved below target: fewer responses than arrivals. The dashed "
        "red line is the limit of p95.",
        "reqps",
        (8, 11),
    )
