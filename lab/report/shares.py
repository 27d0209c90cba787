"""What a cell's load was made of: CPU per service, and the answers of each cache."""

from typing import Any

import altair as alt

from lab.report.blocks import Key, Picture
from lab.report.model import Cell, Report
from lab.report.style import (
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
)

_STEP = 24  # points per bar

_SERVICES = {
    "backend": BLUE,
    "postgres": ORANGE,
    "nginx": GREEN,
    "redis": VERMILLION,
    "prometheus": GREY,
}
_MORE = (PURPLE, SKY, "#999933", "#882255")

# Good answers are blue and green, those that cost the backend something red and orange.
_OUTCOMES = {
    "HIT": GREEN,
    "STALE": "#b8a800",
    "UPDATING": SKY,
    "REVALIDATED": BLUE,
    "EXPIRED": ORANGE,
    "MISS": VERMILLION,
    "BYPASS": PURPLE,
    "UNAVAILABLE": "#882255",
    "NONE": GREY,
}
CACHES = ("nginx", "redis", "local")


def palette(names: list[str], known: dict[str, str]) -> dict[str, str]:
    """A colour for every name; those that are not known get what is left."""
    new = [name for name in names if name not in known]
    more = {name: _MORE[i % len(_MORE)] for i, name in enumerate(new)}
    return {name: colour for name, colour in {**known, **more}.items() if name in names}


def cpu(report: Report, panel: str) -> Picture | None:
    """Mean cores per service, stacked; None when nothing was sampled."""
    cells = [c for c in report.of_panel(panel) if c.middle and c.middle.get("services_cpu")]
    rows = [row for cell in cells for row in _cpu_rows(report, cell)]
    if not rows:
        return None
    colours = palette(list(dict.fromkeys(row["part"] for row in rows)), _SERVICES)
    totals: dict[str, float] = {}
    for row in rows:
        totals[row["cell"]] = totals.get(row["cell"], 0) + row["value"]
    top = max(max(totals.values()) * 1.12, 0.1)
    panels = [
        _bars(report, own, colours, series or "all cells", "CPU (mean cores)", [0, top])
        for series, own in _by_series(report, rows)
    ]
    return Picture(
        f"cpu-{panel}" if panel else "cpu",
        alt=f"Mean cores that each service used under {panel or 'the load'}, per layer",
        caption="Mean cores that each service of the target used while the load ran.",
        panels=panels,
        legend=[Key(name, shade, "bar") for name, shade in colours.items()],
    )


def _cpu_rows(report: Report, cell: Cell) -> list[dict[str, Any]]:
    assert cell.middle is not None
    layer, series, _ = report.place(cell)
    return [
        {
            "layer": layer,
            "series": series,
            "cell": cell.name,
            "part": service,
            "value": significant(used, 3),
            "count": significant(used, 3),
        }
        for service, used in cell.middle["services_cpu"].items()
        if used
    ]


def cache(report: Report, panel: str) -> Picture | None:
    """Shares of the answers of each cache; None when no cache was asked."""
    rows = [r for c in report.of_panel(panel) if c.middle for r in _cache_rows(report, c)]
    if not rows:
        return None
    colours = palette(_in_order({row["part"] for row in rows}), _OUTCOMES)
    panels = [
        _bars(report, own, colours, _cache_title(layer, series), "share of answers (%)", [0, 100])
        for layer in CACHES
        for series, own in _by_series(report, [row for row in rows if row["cache"] == layer])
    ]
    return Picture(
        f"cache-{panel}" if panel else "cache",
        alt=f"What each cache answered under {panel or 'the load'}, per layer",
        caption=(
            "What each cache that was on answered, as a share of what it was asked. An outer cache "
            "takes requests away from an inner one: Redis is asked only what Nginx passed on."
        ),
        panels=panels,
        legend=[Key(name, shade, "bar") for name, shade in colours.items()],
    )


def _in_order(names: set[str]) -> list[str]:
    return [*(n for n in _OUTCOMES if n in names), *sorted(names - set(_OUTCOMES))]


def _cache_title(cache_layer: str, series: str) -> str:
    where = {"nginx": "Nginx", "redis": "Redis", "local": "local memory"}[cache_layer]
    return f"{series}: {where}" if series else where


def _cache_rows(report: Report, cell: Cell) -> list[dict[str, Any]]:
    assert cell.middle is not None
    layer, series, _ = report.place(cell)
    found = []
    for name, counts in (cell.middle.get("cache") or {}).items():
        total = sum(counts.values())
        found += [
            {
                "layer": layer,
                "series": series,
                "cell": cell.name,
                "cache": name,
                "part": outcome.upper(),
                "value": significant(100 * count / total),
                "count": count,
            }
            for outcome, count in counts.items()
            if count
        ]
    return found


def _by_series(
    report: Report, rows: list[dict[str, Any]]
) -> list[tuple[str, list[dict[str, Any]]]]:
    grouped = [(s, [r for r in rows if r["series"] == s]) for s in report.series_with_cells]
    return [(series, own) for series, own in grouped if own]


def _bars(
    report: Report,
    rows: list[dict[str, Any]],
    colours: dict[str, str],
    title: str,
    x_title: str,
    domain: list[float],
) -> Any:
    """Horizontal bars, one per layer, stacked in the order of the legend."""
    here = {row["layer"] for row in rows}
    layers = [name for name in report.rows.positions if name in here]
    order = {name: i for i, name in enumerate(colours)}
    data = [{**row, "order": order[row["part"]]} for row in rows]
    scale = alt.Scale(domain=list(colours), range=list(colours.values()))
    return (
        chart_of(data)
        .mark_bar()
        .encode(
            x=alt.X("value:Q", stack="zero", axis=plain_axis(x_title)).scale(
                domain=domain, nice=False
            ),
            y=alt.Y("layer:N", sort=layers, scale=alt.Scale(domain=layers, padding=0.2)).title(
                None
            ),
            color=alt.Color("part:N", scale=scale),
            order=alt.Order("order:Q"),
            tooltip=[
                alt.Tooltip("cell:N", title="cell"),
                alt.Tooltip("part:N", title="what"),
                alt.Tooltip("value:Q", title=x_title, format=",~r"),
                alt.Tooltip("count:Q", title="count", format=",~r"),
            ][: 4 if domain[1] == 100 else 3],
        )
        .properties(title=title, height=_STEP * len(layers))
    )
