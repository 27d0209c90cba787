"""The main picture: the compared metric of every row, by panel and series."""

import math
from collections.abc import Callable
from typing import Any

import altair as alt

from load_lab.experiments.report.rows import Cell, Report
from load_lab.results.blocks import Key, Picture
from load_lab.results.chart_style import (
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    chart_of,
    log_domain,
    log_scale,
    needs_log_axis,
    plain_axis,
    significant,
    spec_of,
)
from load_lab.results.formatting import join_words
from load_lab.results.limit import Limit
from load_lab.results.result import ComparedMetric

_COLOURS = (ORANGE, BLUE, GREEN, PURPLE)
_SHAPES = ("circle", "square", "diamond", "triangle-up")
_STEP = 19  # in points per mark
# Marks beyond this share of the axis have their value on the left, where there is room.
_LEFT_LABEL_SHARE = 0.55


def series_colour(index: int) -> str:
    return _COLOURS[index % len(_COLOURS)]


def comparison(report: Report) -> Picture | None:
    """Return the compared metric per row; None without measurements."""
    domains = {metric: domain for metric in report.metrics if (domain := _domain(report, metric))}
    names = [panel for panel in _panels_with_cells(report) if report.metric(panel) in domains]
    if not names:
        return None
    panels = [_panel(report, panel, *domains[report.metric(panel)]) for panel in names]
    row_name = report.rows.name or "cell"
    return Picture(
        "comparison",
        title=title(report),
        alt=f"{join_words([f.axis for f in domains])}, for every {row_name} and load",
        caption=_caption(list(domains), any(log for _, log in domains.values())),
        panels=panels,
        legend=_legend(report),
    )


def title(report: Report) -> str:
    """Return the title of the picture and of its section."""
    row_name = report.rows.name or "cell"
    metrics = report.metrics
    return (
        f"{metrics[0].full_name} of every {row_name}"
        if len(metrics) == 1
        else f"Every {row_name} compared"
    )


def _domain(report: Report, metric: ComparedMetric) -> tuple[tuple[float, float], bool] | None:
    """Return the domain of all panels with this metric, and whether it is logarithmic."""
    medians = (
        cell.median(metric.name)
        for panel in _panels_with_cells(report)
        if report.metric(panel) is metric
        for cell in report.panel_cells(panel)
    )
    values = [value for value in medians if value is not None]
    if not values:
        return None
    log = needs_log_axis(values)
    return log_domain(values) if log else (0.0, max(values) * 1.1 or 1.0), log


def _panels_with_cells(report: Report) -> list[str]:
    return [panel for panel in report.panels.positions if report.panel_cells(panel)]


def _caption(metrics: list[ComparedMetric], log: bool) -> str:
    scale = "The axis is logarithmic. " if log else ""
    open_mark_note = (
        "An open mark with ≥ is a lower bound: the load generator, the number of virtual users or "
        "the end of the load was the limit, not the target. "
    )
    bound_note = open_mark_note if any(metric.bounded for metric in metrics) else ""
    captions = " ".join(metric.caption for metric in metrics)
    return f"{captions} {scale}{bound_note}A bar is the range of the repeats."


def _legend(report: Report) -> list[Key]:
    legend_keys = [
        Key(_label(name, title), series_colour(i), _SHAPES[i % len(_SHAPES)])  # type: ignore[arg-type]
        for i, (name, title) in enumerate(report.series.positions.items())
        if name in report.series_with_cells and name
    ]
    open_mark = Key("≥, limited by the generator or the VU cap", "#7a7a7a", "circle", open=True)
    return (
        [*legend_keys, open_mark]
        if any(_limit(report, cell) for cell in report.cells)
        else legend_keys
    )


def _limit(report: Report, cell: Cell) -> Limit | None:
    """Return why the cell's value is a lower bound; None if it is not, or the metric has none."""
    return cell.limit if report.metric(report.place(cell)[2]).bounded else None


def _label(name: str, title: str) -> str:
    return f"{name}: {title}" if title else name


def _panel(report: Report, panel: str, domain: tuple[float, float], log: bool) -> dict[str, Any]:
    cells = report.panel_cells(panel)
    names = {report.place(cell)[0] for cell in cells}
    layers = [row for row in report.rows.positions if row in names]
    series = report.series_with_cells
    rows = [_row(report, cell, domain, log) for cell in cells]
    scale = log_scale(domain) if log else alt.Scale(domain=list(domain), nice=False)
    axis = plain_axis(report.metric(panel).axis, domain if log else None)
    base = chart_of(rows).encode(
        y=alt.Y("layer:N", sort=layers, scale=alt.Scale(domain=layers, paddingInner=0.25))
        .title(None)
        .axis(grid=True, tickBand="extent", domain=False, ticks=False),
        yOffset=alt.YOffset("series:N", sort=series, scale=alt.Scale(domain=series)),
        tooltip=_TOOLTIP,
    )

    def x(name: str = "x") -> alt.X:
        return alt.X(f"{name}:Q", scale=scale, axis=axis)

    height = _STEP * len(layers) * len(series) + 6 * len(layers)
    chart = alt.layer(
        _ranges(base, x, report),
        _marks(base, x, report),
        _open_marks(base, x, report),
        *_texts(base, x),
    ).properties(title=panel, height=height)
    return spec_of(chart)


_TOOLTIP = [
    alt.Tooltip("cell:N", title="cell"),
    alt.Tooltip("value:N", title="figure"),
    alt.Tooltip("note:N", title="note"),
]


def _row(report: Report, cell: Cell, domain: tuple[float, float], log: bool) -> dict[str, Any]:
    layer, series, panel = report.place(cell)
    metric = report.metric(panel)
    value = cell.spread(metric.name)
    row = {"layer": layer, "series": series, "cell": cell.name, "state": cell.state, "right": False}
    if value is None:
        state = "failed" if cell.state == "failed" else "not measured"
        return {
            **row,
            "x": domain[0],
            "edge": domain[0],
            "text": state,
            "value": state,
            "note": state,
        }
    ends = [max(significant(v) or 0.0, domain[0]) for v in value[:3]]
    limit, text = _limit(report, cell), metric.form(value.median)
    mark = "≥ " if limit and value.median else ""
    label = f"{mark}{text} · {limit.short}" if limit else text
    right = _share(ends[0], domain, log) > _LEFT_LABEL_SHARE
    return {
        **row,
        "x": ends[0],
        "low": ends[1],
        "high": ends[2],
        "text": label,
        "right": right,
        "edge": ends[1 if right else 2],
        "open": limit is not None,
        "value": mark + metric.text(value),
        "note": f"lower bound, limited by {limit.text}" if limit else metric.axis,
    }


def _share(value: float, domain: tuple[float, float], log: bool) -> float:
    """Return the position on the axis, from 0 to 1."""
    if log:
        low, high, value = math.log(domain[0]), math.log(domain[1]), math.log(value)
    else:
        low, high = domain
    return (value - low) / (high - low)


def _colour(report: Report) -> alt.Color:
    names = list(report.series.positions)
    colours = [series_colour(i) for i in range(len(names))]
    return alt.Color(
        "series:N", scale=alt.Scale(domain=names, range=colours), legend=_no_empty(names)
    )


def _no_empty(names: list[str]) -> Any:
    return alt.Legend(title=None) if any(names) else None


def _shape(report: Report) -> alt.Shape:
    names = list(report.series.positions)
    shapes = [_SHAPES[i % len(_SHAPES)] for i in range(len(names))]
    scale = alt.Scale(domain=names, range=shapes)
    return alt.Shape("series:N", scale=scale, legend=_no_empty(names))


def _ranges(base: alt.Chart, x: Callable[..., alt.X], report: Report) -> Any:
    return (
        base.transform_filter("datum.high > datum.low")
        .mark_rule(strokeWidth=5, opacity=0.35)
        .encode(x=x("low"), x2="high:Q", color=_colour(report))
    )


def _marks(base: alt.Chart, x: Callable[..., alt.X], report: Report) -> Any:
    return (
        base.transform_filter("datum.state == 'measured' && !datum.open")
        .mark_point(filled=True, size=90, opacity=1)
        .encode(x=x(), color=_colour(report), shape=_shape(report))
    )


def _open_marks(base: alt.Chart, x: Callable[..., alt.X], report: Report) -> Any:
    return (
        base.transform_filter("datum.open")
        .mark_point(filled=False, size=90, opacity=1, strokeWidth=2.2)
        .encode(x=x(), color=_colour(report), shape=_shape(report))
    )


def _texts(base: alt.Chart, x: Callable[..., alt.X]) -> list[Any]:
    def texts_where(condition: str, **mark: Any) -> Any:
        return (
            base.transform_filter(condition)
            .mark_text(baseline="middle", **mark)
            .encode(x=x("edge"), text="text:N")
        )

    return [
        texts_where("datum.state == 'measured' && datum.right", align="right", dx=-9),
        texts_where("datum.state == 'measured' && !datum.right", align="left", dx=9),
        texts_where(
            "datum.state != 'measured'", align="left", dx=4, fontStyle="italic", color="#7a7a7a"
        ),
    ]
