"""Response time, goodput and errors over the arrival rate: one line per layer."""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import altair as alt

from load_lab.experiments.report.rows import Cell, Report
from load_lab.metrics.windows import Window
from load_lab.results.blocks import Key, Picture, slug
from load_lab.results.chart_style import (
    GREY,
    chart_of,
    colour,
    dash,
    log_domain,
    log_scale,
    needs_log_axis,
    plain_axis,
    significant,
    spec_of,
)
from load_lab.results.result import Result

# Windows are 5 s long and start one second apart: every fifth still covers the whole run.
_MAX_POINTS = 60
_HEIGHT = 210
_EXTENT = 48  # in points: room for the labels left of the axis, so that panels are aligned


@dataclass(frozen=True)
class _Measure:
    """One metric of a window, and its limit."""

    field: str
    title: str
    panel_title: str
    limit: float | None
    log: bool


@dataclass(frozen=True)
class _Scales:
    """The axes shared by the panels of one picture, so that they are comparable."""

    x_title: str
    x: alt.Scale
    x_log: tuple[float, float] | None


def curves(report: Report, panel: str) -> Picture | None:
    """Return the curves of one load; None if its cells have no windows."""
    results = [(cell, result) for cell, result in report.panel_results(panel) if result.windows]
    if not results:
        return None
    rising = all(_is_rising(result.windows) for _, result in results)
    rows = [row for cell, result in results for row in _rows(report, cell, result, rising)]
    scales = _scales(rows, _x_title([result for _, result in results], rising))
    series = [s for s in report.series_with_cells if any(row["series"] == s for row in rows)]
    panels = [
        _panel(report, rows, measure, name, scales)
        for measure in _measures(report, [cell for cell, _ in results], rows)
        for name in series
    ]
    return Picture(
        slug("curves", panel),
        title=_title(panel, "response time, goodput and errors"),
        alt=f"Response time, goodput and errors of {panel or 'the load'} over the arrival rate",
        caption=_caption(rising),
        panels=panels,
        legend=keys(report, rows),
        columns=max(len(series), 1),
    )


def _title(panel: str, what: str) -> str:
    return f"{panel}: {what}" if panel else what.capitalize()


def _caption(rising: bool) -> str:
    x_name = "the arrival rate" if rising else "the seconds since the load began"
    return (
        f"Over {x_name}, in windows of 5 s. Filled mark: the cell broke here. Open mark: the "
        "generator or the number of virtual users was the bottleneck here. Dotted: the limit. "
        "On a logarithmic axis zero is drawn on the lower edge."
    )


def _is_rising(windows: list[Window]) -> bool:
    return all(a.offered < b.offered for a, b in pairwise(windows))


def _rows(report: Report, cell: Cell, result: Result, rising: bool) -> list[dict[str, Any]]:
    layer, series, _ = report.place(cell)
    break_end = result.break_point.seconds_into_test if result.break_point else None
    common = {"layer": layer, "series": series}
    return [
        {**common, **_point(window, rising), **_mark(result, window, break_end)}
        for window in thin_windows(result.windows, break_end)
    ]


def thin_windows(windows: list[Window], break_end: float | None) -> list[Window]:
    """Return at most about 60 windows, always with the first, the last and the one of the break."""
    every = math.ceil(len(windows) / _MAX_POINTS)
    last = len(windows) - 1
    return [
        window
        for i, window in enumerate(windows)
        if i % every == 0 or i == last or window.end == break_end
    ]


def _point(window: Window, rising: bool) -> dict[str, Any]:
    return {
        "x": significant(window.offered if rising else window.end),
        "offered": significant(window.offered),
        "p95": significant(window.p95_ms, 3),
        "goodput": significant(window.goodput, 3),
        "errors": significant(100 * window.error_ratio, 3),
    }


def _mark(result: Result, window: Window, break_end: float | None) -> dict[str, Any]:
    if break_end is None or window.end != break_end:
        return {}
    return {"mark": "open" if result.lower_bound else "filled"}


def _x_title(results: list[Result], rising: bool) -> str:
    if not rising:
        return "seconds since the load began"
    # An arrival is a request, or a whole journey with its pauses.
    units = {result.unit or "requests" for result in results}
    return f"arrival rate ({' or '.join(sorted(units))}/s)"


def _scales(rows: list[dict[str, Any]], title: str) -> _Scales:
    ends = {(row["layer"], row["series"]): row["x"] for row in rows}
    values = [row["x"] for row in rows]
    if title.startswith("arrival") and needs_log_axis(ends.values(), 8):
        domain = log_domain(values)
        return _Scales(title, log_scale(domain), domain)
    return _Scales(title, alt.Scale(domain=[0, max(values)], nice=False), None)


def _measures(report: Report, cells: list[Cell], rows: list[dict[str, Any]]) -> list[_Measure]:
    bounds = report.header.get("bounds", {})
    limits = {
        cell.middle.workload.bound_ms or bounds.get("p95_ms") for cell in cells if cell.middle
    }
    p95_limit = limits.pop() if len(limits) == 1 else None
    errors = bounds.get("error_ratio")
    goodput_log = needs_log_axis((row["goodput"] for row in rows), 100)
    return [
        _Measure("p95", "p95 (ms)", "response time, p95", p95_limit, True),
        _Measure("goodput", "goodput (answers in time/s)", "goodput", None, goodput_log),
        _Measure("errors", "errors (%)", "errors", None if errors is None else 100 * errors, False),
    ]


def _panel(
    report: Report, rows: list[dict[str, Any]], measure: _Measure, series: str, scales: _Scales
) -> Any:
    series_rows = [
        row for row in rows if row["series"] == series and row[measure.field] is not None
    ]
    y, floor = _y(measure, rows)
    data = [_chart_row(row, measure.field, floor) for row in series_rows]
    base = chart_of(data).encode(
        x=alt.X("x:Q", scale=scales.x, axis=plain_axis(scales.x_title, scales.x_log)),
        y=y,
        color=layer_colour(report, rows),
        tooltip=_tooltips(measure),
    )
    # The tooltips belong to invisible points.
    lines = base.mark_line(
        strokeWidth=2, interpolate="linear", point={"opacity": 0, "size": 70}
    ).encode(strokeDash=layer_dash(report, rows), detail="layer:N")
    title = f"{series}: {measure.panel_title}" if series else measure.panel_title
    layers = [lines, *_break_marks(base), *_limit_line(measure, y)]
    return spec_of(alt.layer(*layers).properties(title=title, height=_HEIGHT))


def _chart_row(row: dict[str, Any], name: str, floor: float) -> dict[str, Any]:
    common = {key: row[key] for key in ("x", "layer", "offered")}
    point = {**common, "y": max(row[name], floor), "value": row[name]}
    return {**point, "mark": row["mark"]} if "mark" in row else point


def _y(measure: _Measure, rows: list[dict[str, Any]]) -> tuple[alt.Y, float]:
    values = [row[measure.field] for row in rows if row[measure.field] is not None]
    values_and_limit = [*values, *([measure.limit] if measure.limit else [])]
    if measure.log and any(values_and_limit):
        domain = log_domain(values_and_limit)
        axis = plain_axis(measure.title, domain, minExtent=_EXTENT)
        return alt.Y("y:Q", scale=log_scale(domain), axis=axis), domain[0]
    top = max([*values, 2 * (measure.limit or 0.5)])
    scale = alt.Scale(domain=[0, top * 1.05], nice=False)
    return alt.Y("y:Q", scale=scale, axis=plain_axis(measure.title, minExtent=_EXTENT)), 0.0


def _tooltips(measure: _Measure) -> list[alt.Tooltip]:
    return [
        alt.Tooltip("layer:N", title="layer"),
        alt.Tooltip("offered:Q", title="rate, per s", format=",~r"),
        alt.Tooltip("value:Q", title=measure.title, format=",~r"),
    ]


def _break_marks(base: alt.Chart) -> list[Any]:
    mark = base.transform_filter("datum.mark == 'filled'").mark_point
    hollow = base.transform_filter("datum.mark == 'open'").mark_point
    return [
        mark(filled=True, size=80, opacity=1),
        hollow(filled=False, size=80, opacity=1, strokeWidth=2.2),
    ]


def _limit_line(measure: _Measure, y: alt.Y) -> list[Any]:
    if not measure.limit:
        return []
    rule = chart_of([{"y": measure.limit}]).mark_rule(
        strokeDash=[2, 3], color=GREY, strokeWidth=1.5
    )
    return [rule.encode(y=y)]


Rows = list[dict[str, Any]]


def layer_colour(report: Report, rows: Rows) -> alt.Color:
    """Return the colour of each layer; the legend lists those with rows."""
    names = list(report.rows.positions)
    scale = alt.Scale(domain=names, range=[colour(i) for i in range(len(names))])
    return alt.Color("layer:N", scale=scale, legend=_legend(report, rows))


def layer_dash(report: Report, rows: Rows) -> alt.StrokeDash:
    """Return the dash of each layer."""
    names = list(report.rows.positions)
    scale = alt.Scale(domain=names, range=[list(dash(i)) or [1, 0] for i in range(len(names))])
    return alt.StrokeDash("layer:N", scale=scale, legend=_legend(report, rows))


def keys(report: Report, rows: Rows) -> list[Key]:
    """Return the page's legend: the lines and marks with rows."""
    names = _names_with_rows(report, rows)
    lines = [
        Key(name, colour(i), "line", dash(i))
        for i, name in enumerate(report.rows.positions)
        if name in names
    ]
    marks = {row.get("mark") for row in rows}
    break_key = [Key("broke", GREY, "circle")] if "filled" in marks else []
    limit_key = Key("limited by generator or VU cap", GREY, "circle", open=True)
    return [*lines, *break_key, *([limit_key] if "open" in marks else [])]


def _legend(report: Report, rows: Rows) -> alt.Legend:
    values = _names_with_rows(report, rows)
    return alt.Legend(symbolType="stroke", symbolSize=500, title=None, values=values)


def _names_with_rows(report: Report, rows: Rows) -> list[str]:
    names = {row["layer"] for row in rows}
    return [name for name in report.rows.positions if name and name in names]
