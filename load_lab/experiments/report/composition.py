"""Composition of a cell's load: CPU per service, and the responses of each cache."""

import re
from dataclasses import dataclass
from typing import Any

import altair as alt

from load_lab.experiments.report.rows import Cell, Report
from load_lab.results.blocks import Key, Picture, slug
from load_lab.results.chart_style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    VERMILLION,
    chart_of,
    plain_axis,
    significant,
    spec_of,
)
from load_lab.results.result import Result

_STEP = 24  # in points per bar
_LETTER = 6.8  # in points

_EXTRA_COLOURS = (PURPLE, SKY, "#999933", "#882255")

# Responses from a cache are blue and green, those that load the backend red and orange.
_OUTCOMES = {
    "HIT": GREEN,
    "STALE": "#b8a800",
    "UPDATING": SKY,
    "REVALIDATED": BLUE,
    "EXPIRED": ORANGE,
    "MISS": VERMILLION,
    "BYPASS": PURPLE,
    "REFUSED": "#882255",
    "UNAVAILABLE": "#882255",
    "NONE": GREY,
}
CACHES = ("nginx", "redis", "local")


def palette(names: list[str], known: dict[str, str]) -> dict[str, str]:
    """Return a colour for every name; unknown names get the remaining colours."""
    unknown = [name for name in names if name not in known]
    extra = {name: _EXTRA_COLOURS[i % len(_EXTRA_COLOURS)] for i, name in enumerate(unknown)}
    return {name: colour for name, colour in {**known, **extra}.items() if name in names}


@dataclass(frozen=True)
class _Bars:
    """The common properties of the panels of one picture."""

    title: str
    top: float
    colours: dict[str, str]
    with_counts: bool = False


def cpu(report: Report, panel: str) -> Picture | None:
    """Return mean cores per service, stacked; None without samples."""
    results = list(report.panel_results(panel))
    cores = merge_services([result.services_cpu for _, result in results])
    rows = [
        row
        for (cell, _), service_cores in zip(results, cores, strict=True)
        for row in _cpu_rows(report, cell, service_cores)
    ]
    if not rows:
        return None
    colours = palette(list(dict.fromkeys(row["part"] for row in rows)), COLOURS)
    bars = _Bars("CPU (mean cores)", _highest(rows), colours)
    panels = [
        _panel(report, series_rows, bars, series)
        for series, series_rows in _by_series(report, rows)
    ]
    return Picture(
        slug("cpu", panel),
        title=f"{panel}: CPU per service" if panel else "CPU per service",
        alt=f"Mean cores that each service used under {panel or 'the load'}",
        caption=(
            "Mean cores that each service of the target used while the load ran. Others took next "
            "to nothing in every cell, such as exporters."
        ),
        panels=panels,
        legend=_legend(colours),
    )


def _highest(rows: list[dict[str, Any]]) -> float:
    """Return the end of the axis, slightly above the longest bar."""
    totals: dict[str, float] = {}
    for row in rows:
        totals[row["cell"]] = totals.get(row["cell"], 0) + row["value"]
    return max(totals.values()) * 1.05


def _legend(colours: dict[str, str]) -> list[Key]:
    return [Key(name, colour, "bar") for name, colour in colours.items()]


def _cpu_rows(report: Report, cell: Cell, cores: dict[str, float]) -> list[dict[str, Any]]:
    layer, series, _ = report.place(cell)
    place = {"layer": layer, "series": series, "cell": cell.name}
    return [
        {**place, "part": service, "value": significant(used, 3)}
        for service, used in cores.items()
        if used
    ]


def cache(report: Report, panel: str) -> Picture | None:
    """Return the shares of each cache's responses; None if no cache was used."""
    rows = [row for drawn in report.panel_results(panel) for row in _cache_rows(report, *drawn)]
    if not rows:
        return None
    colours = palette(_sort_outcomes({row["part"] for row in rows}), _OUTCOMES)
    bars = _Bars("share of answers (%)", 100, colours, with_counts=True)
    return Picture(
        slug("cache", panel),
        title=f"{panel}: cache answers" if panel else "Cache answers",
        alt=f"What each cache answered under {panel or 'the load'}",
        caption=(
            "What each cache that was on answered, as a share of what it was asked. An outer cache "
            "takes requests away from an inner one: Redis is asked only what Nginx passed on."
        ),
        panels=[one for name in CACHES for one in _cache_panels(report, rows, bars, name)],
        legend=_legend(colours),
    )


def _cache_panels(
    report: Report, rows: list[dict[str, Any]], bars: _Bars, name: str
) -> list[dict[str, Any]]:
    cache_name = {"nginx": "Nginx", "redis": "Redis", "local": "local memory"}[name]
    cache_rows = [row for row in rows if row["cache"] == name]
    return [
        _panel(report, series_rows, bars, f"{series}: {cache_name}" if series else cache_name)
        for series, series_rows in _by_series(report, cache_rows)
    ]


def _sort_outcomes(names: set[str]) -> list[str]:
    return [*(n for n in _OUTCOMES if n in names), *sorted(names - set(_OUTCOMES))]


def _cache_rows(report: Report, cell: Cell, result: Result) -> list[dict[str, Any]]:
    layer, series, _ = report.place(cell)
    place = {"layer": layer, "series": series, "cell": cell.name}
    return [
        {
            **place,
            "cache": name,
            "part": outcome.upper(),
            "value": significant(100 * count / sum(counts.values())),
            "count": count,
        }
        for name, counts in result.cache.items()
        for outcome, count in counts.items()
        if count
    ]


def _by_series(
    report: Report, rows: list[dict[str, Any]]
) -> list[tuple[str, list[dict[str, Any]]]]:
    """Return the rows of each series; every series has all layers, so that the bars are aligned."""
    layers = dict.fromkeys(row["layer"] for row in rows)
    grouped = [(s, [r for r in rows if r["series"] == s]) for s in report.series_with_cells]
    return [
        (series, [*series_rows, *({"layer": layer} for layer in layers)])
        for series, series_rows in grouped
        if series_rows
    ]


def _panel(report: Report, rows: list[dict[str, Any]], bars: _Bars, title: str) -> dict[str, Any]:
    """Draw horizontal bars, one per layer, stacked in the order of the legend."""
    layers = [name for name in report.rows.positions if any(r["layer"] == name for r in rows)]
    order = {name: i for i, name in enumerate(bars.colours)}
    data = [{**row, "order": order[row["part"]]} for row in rows if "part" in row]
    colours = alt.Scale(domain=list(bars.colours), range=list(bars.colours.values()))
    x_scale = alt.Scale(domain=[0, bars.top], nice=False)
    # Room for the longest label, so that the bars of all panels are aligned.
    extent = _LETTER * max(map(len, report.rows.positions)) + 6
    y_axis = alt.Axis(title=None, minExtent=min(extent, 220))
    chart = (
        chart_of(data)
        .mark_bar()
        .encode(
            x=alt.X("value:Q", stack="zero", axis=plain_axis(bars.title), scale=x_scale),
            y=alt.Y("layer:N", axis=y_axis, scale=alt.Scale(domain=layers, padding=0.2)),
            color=alt.Color("part:N", scale=colours),
            order=alt.Order("order:Q"),
            tooltip=_tooltips(bars),
        )
    )
    return spec_of(chart.properties(title=title or "all cells", height=_STEP * len(layers)))


def _tooltips(bars: _Bars) -> list[alt.Tooltip]:
    tooltips = [
        alt.Tooltip("cell:N", title="cell"),
        alt.Tooltip("part:N", title="part"),
        alt.Tooltip("value:Q", title=bars.title, format=",~r"),
    ]
    return (
        [*tooltips, alt.Tooltip("count:Q", title="answers", format=",")]
        if bars.with_counts
        else tooltips
    )


OTHERS = "others"
COLOURS = {
    "backend": BLUE,
    "backend-beside": SKY,
    "backend-worker": "#882255",
    "legacy-web": PURPLE,
    "legacy-workers": "#44aa99",
    "legacy-redis": "#999933",
    "postgres": ORANGE,
    "nginx": GREEN,
    "redis": VERMILLION,
    "toxiproxy": "#661100",
    OTHERS: GREY,
}
# Exporters and similar services use less than this in every cell; colours for them would distract.
_MIN_CORES = 0.05
_WORKER = re.compile(r"legacy-worker-\d+")


def merge_services(cells: list[dict[str, float]]) -> list[dict[str, float]]:
    """Return the cores by service of each cell; merges workers of one kind, and idle services."""
    sums = [_sum_by_name({name: _service(name) for name in cell}, cell) for cell in cells]
    names = {name for cell in sums for name in cell}
    busy = {n for n in names if max(cell.get(n, 0) for cell in sums) >= _MIN_CORES}
    new_names = {name: name if name in busy else OTHERS for name in names}
    return [_sum_by_name(new_names, cell) for cell in sums]


def _service(name: str) -> str:
    return "legacy-workers" if _WORKER.fullmatch(name) else name


def _sum_by_name(new_names: dict[str, str], cell: dict[str, float]) -> dict[str, float]:
    sums: dict[str, float] = {}
    for name, cores in cell.items():
        sums[new_names[name]] = sums.get(new_names[name], 0) + cores
    return sums
