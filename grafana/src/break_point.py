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
from grafana.src.queries import knee, load, selection, totals
from grafana.src.scatter import Axes, Scatter, XYSeries, scatter

TEST = selection.variable_matcher()
_ARRIVALS = "arrivals per second"


def build() -> Dashboard:
    page = Page(
        "lab-break-point",
        "Break point",
        "At which arrival rate is a limit exceeded, and is the target the bottleneck?",
        [variables.planned_test()],
        annotations=run_annotations(TEST),
    )
    _results(page)
    _curves(page)
    _cpu(page)
    return page.dashboard


def _results(page: Page) -> None:
    for title, description, unit, panel in (
        (
            "Knee",
            "The lowest arrival rate at which p95 exceeds 1 s or errors exceed 1 %, and still do "
            "5 s and 10 s later. The verdict of `lab k6 breakpoint` has a third limit and finer "
            "windows.",
            "reqps",
            number(Query(knee.knee(TEST), ""), over_range=True).no_value("not reached"),
        ),
        (
            "Best goodput",
            "Highest number of successful responses within the limit per second, of any 10 s.",
            "reqps",
            number(Query(knee.best_goodput(TEST), ""), over_range=True),
        ),
        (
            "Peak generator CPU",
            "Highest CPU use of k6 and the measuring services on the generator's CPUs, or of the "
            "generator's separate host. From 90 % on, the knee shows the generator's limit, not "
            "the target's.",
            "percentunit",
            number(
                Query(knee.peak_generator_cpu(TEST), ""), (None, GOOD), (0.9, BAD), over_range=True
            ),
        ),
        (
            "Dropped",
            "Iterations that were due while no virtual user was free. Above the knee: all virtual "
            "users were waiting for the target.",
            "short",
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
        _over_rate(load.percentile(TEST, 0.95), selection.MAX_SECONDS, "p95", log=True),
        "p95 over the arrival rate",
        "Each point covers 10 s of the test, red above the limit of 1 s (horizontal line). The "
        "vertical line is the knee.",
        "s",
        (12, 12),
    )
    page.add(
        _over_rate(load.error_ratio(TEST), selection.MAX_ERROR_RATIO, "errors"),
        "Errors over the arrival rate",
        "Share of failed responses, red above the limit of 1 % (horizontal line). The vertical "
        "line is the knee.",
        "percentunit",
        (12, 12),
    )


def _over_rate(metric: str, limit: float, name: str, *, log: bool = False) -> Scatter:
    rate = load.target_rate(TEST)
    columns = {
        "rate": rate,
        name: metric,
        "limit": f"0 * {rate} + {limit}",
        "at the knee": knee.knee(TEST),
        "knee": f"({metric}) and on () {rate}",
    }
    plots = [
        XYSeries("rate", name),
        XYSeries("rate", "limit", LIMIT, line=True),
        XYSeries("at the knee", "knee", "purple", line=True),
    ]
    return scatter(columns, plots, Axes(_ARRIVALS, name, log), limit)


def _cpu(page: Page) -> None:
    columns = {
        "rate": load.target_rate(TEST),
        "generator": f"{knee.generator_cpu()} and on () {load.target_rate(TEST)}",
        "target": f"{knee.side_cpu('target')} and on () {load.target_rate(TEST)}",
    }
    plots = [XYSeries("rate", "generator", LIMIT), XYSeries("rate", "target", "blue")]
    page.add(
        scatter(columns, plots, Axes(_ARRIVALS, "CPU in use"), 0.9),
        "CPU over the arrival rate",
        "Share of each side's CPUs in use. With the generator near 100 % at the knee, the "
        "generator is the limit. With k6 on a separate host it is that host's CPU.",
        "percentunit",
        (12, 11),
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
        draw_dashed(draw_limit(panel, selection.MAX_SECONDS), "target"),
        "Rates over time",
        "The same test over time. Achieved below target: fewer responses than arrivals.",
        "reqps",
        (12, 11),
    )
