"""The style of the lab's charts, and the export to files."""

import json
import math
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert

# Okabe and Ito's colours, which colour-blind readers can distinguish, without black and yellow: the
# rest is visible on white and on black.
GREY, ORANGE, SKY, GREEN = "#7a7a7a", "#e69f00", "#56b4e9", "#009e73"
BLUE, VERMILLION, PURPLE = "#0072b2", "#d55e00", "#cc79a7"
_CYCLE = (BLUE, ORANGE, GREEN, VERMILLION, PURPLE, SKY)
_DASHES: tuple[tuple[int, ...], ...] = ((), (6, 3), (2, 2))

VEGA_LITE = "6.4"  # Altair 6 writes this version (altair.SCHEMA_VERSION)

CONFIG: dict[str, Any] = {
    "background": "white",
    "font": "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', Arial, sans-serif",
    "view": {"stroke": None},
    "axis": {
        "gridColor": "#8883",
        "domainColor": "#888",
        "tickColor": "#888",
        "labelColor": "#333",
        "titleColor": "#333",
        "titleFontWeight": "normal",
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titlePadding": 6,
        "labelLimit": 320,
    },
    "title": {"anchor": "start", "fontSize": 13, "fontWeight": "bold", "offset": 8},
    "legend": {
        "orient": "bottom",
        "columns": 5,
        "labelFontSize": 12,
        "labelLimit": 400,
        "symbolSize": 90,
        "symbolOpacity": 1,
        "symbolStrokeWidth": 2.5,
        "padding": 4,
        "title": None,
    },
    "text": {"fontSize": 11, "color": "#333"},
}

_PANEL_WIDTH = 430  # in points, in the static version
_PNG_SCALE = 2


def colour(index: int) -> str:
    """Return the colour of a compared variant; the first one, the baseline, is grey."""
    return GREY if index == 0 else _CYCLE[(index - 1) % len(_CYCLE)]


def dash(index: int) -> tuple[int, ...]:
    return () if index == 0 else _DASHES[(index - 1) // len(_CYCLE) % len(_DASHES)]


def chart_of(rows: list[dict[str, Any]]) -> alt.Chart:
    """Return a chart with the rows inline."""
    return alt.Chart(alt.InlineData(values=rows))


def needs_log_axis(values: Iterable[float | None], ratio: float = 20) -> bool:
    """Return whether the values need a log axis."""
    numbers = [value for value in values if value]
    return bool(numbers) and max(numbers) / min(numbers) > ratio


def log_domain(values: Iterable[float | None]) -> tuple[float, float]:
    """Return round ends, slightly outside of all values above zero."""
    numbers = [value for value in values if value]
    if not numbers:
        return 0.1, 10
    return _round(min(numbers) / 1.3, up=False), _round(max(numbers) * 1.3, up=True)


def _round(value: float, *, up: bool) -> float:
    """Return the nearest 1, 2 or 5 times a power of ten, above or below."""
    base = 10 ** math.floor(math.log10(value))
    steps = [base * step for step in (1, 2, 5, 10)]
    step = next(s for s in steps if s >= value) if up else [s for s in steps if s <= value][-1]
    return float(f"{step:.6g}")


def log_ticks(domain: tuple[float, float]) -> list[float]:
    """Return powers of ten; over a small range also their double and five times."""
    low, high = domain
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps: Sequence[int] = (1, 2, 5) if high / low <= 300 else (1,)
    ticks = [float(f"{10.0**power * step:.6g}") for power in powers for step in steps]
    return [tick for tick in ticks if low <= tick <= high]


def log_scale(domain: tuple[float, float]) -> alt.Scale:
    return alt.Scale(type="log", domain=list(domain), nice=False, clamp=True)


def plain_axis(title: str, domain: tuple[float, float] | None = None, **more: Any) -> alt.Axis:
    """Return an axis with plain numbers as labels: 0.1, 10, 1,000. `domain` is for a log scale."""
    if domain is not None:
        more["values"] = log_ticks(domain)
    return alt.Axis(title=title, format=",~r", labelOverlap=True, labelSeparation=8, **more)


def significant(value: float | None, digits: int = 4) -> float | None:
    """Round for the page: most of its size is windows."""
    return None if value is None else float(f"{value:.{digits}g}")


def spec_of(chart: Any) -> dict[str, Any]:
    """Return the Vega-Lite of one panel, without the config that all panels share."""
    spec: dict[str, Any] = chart.to_dict()
    spec.pop("config", None)
    return spec


def page_spec(panel: dict[str, Any]) -> dict[str, Any]:
    """Make a panel as wide as the page allows, without a legend: the page has one."""
    return _without_legends({**panel, "width": "container"})


def _without_legends(spec: dict[str, Any]) -> dict[str, Any]:
    result = dict(spec)
    if "encoding" in spec:
        result["encoding"] = {
            channel: {**encoding, "legend": None}
            if channel in ("color", "shape", "strokeDash") and "field" in encoding
            else encoding
            for channel, encoding in spec["encoding"].items()
        }
    if "layer" in spec:
        result["layer"] = [_without_legends(layer) for layer in spec["layer"]]
    return result


def static_spec(
    panels: list[dict[str, Any]], columns: int, title: str, caption: str
) -> dict[str, Any]:
    """Return all panels in one picture with one legend and a caption."""
    columns = min(columns, len(panels))
    subtitle = textwrap.wrap(caption, 82 * columns)
    return {
        "$schema": alt.SCHEMA_URL,
        "title": title_spec(title, subtitle),
        "config": CONFIG,
        "padding": 14,
        "columns": columns,
        "spacing": {"row": 24, "column": 32},
        # Altair stores the rows of a panel next to it; in one picture they are stored next to all
        # panels.
        "datasets": {name: rows for p in panels for name, rows in p.get("datasets", {}).items()},
        "concat": [_part(panel) for panel in panels],
        "resolve": {"scale": dict.fromkeys(("color", "strokeDash", "shape"), "shared")},
    }


def _part(panel: dict[str, Any]) -> dict[str, Any]:
    own = {key: value for key, value in panel.items() if key not in ("datasets", "$schema")}
    return {**own, "width": _PANEL_WIDTH}


def title_spec(title: str, lines: list[str]) -> dict[str, Any]:
    """Return the title of a whole picture, with the lines below it."""
    return {
        "text": title,
        "subtitle": lines,
        "anchor": "start",
        "fontSize": 16,
        "offset": 16,
        "subtitleFontSize": 12,
        "subtitleColor": "#5c5c5c",
        "subtitlePadding": 6,
    }


def save(spec: dict[str, Any], path: Path) -> Path:
    """Write `path`.svg and `path`.png; returns the PNG."""
    svg = vl_convert.vegalite_to_svg(json.dumps(spec), vl_version=VEGA_LITE)
    path.with_name(path.name + ".svg").write_text(svg)
    png = path.with_name(path.name + ".png")
    png.write_bytes(vl_convert.svg_to_png(svg, scale=_PNG_SCALE))
    return png
