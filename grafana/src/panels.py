"""The kinds of panels, each with the style that its panels share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grafana_foundation_sdk.builders import common, heatmap, stat, table, timeseries
from grafana_foundation_sdk.builders.dashboard import FieldColor, ThresholdsConfig
from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.models.common import (
    AxisPlacement,
    BigValueColorMode,
    BigValueGraphMode,
    GraphDrawStyle,
    GraphTresholdsStyleMode,
    LegendDisplayMode,
    LegendPlacement,
    ScaleDistribution,
    StackingMode,
    TooltipDisplayMode,
    VisibilityMode,
)
from grafana_foundation_sdk.models.dashboard import (
    DataTransformerConfig,
    DynamicConfigValue,
    FieldColorModeId,
    Threshold,
    ThresholdsMode,
)
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode, HeatmapColorScale
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

GOOD, BAD, NEUTRAL = "green", "red", "text"
# Colour of limits in all panels.
LIMIT = "orange"
# Smallest top of an axis of ratios: an axis with only zeros would reach up to 10,000 %.
SMALL_SHARE = 0.05
# Lowest value of a logarithmic axis of seconds, unless a response takes less.
SHORTEST_SECONDS = 0.001
# Lines continue over longer gaps of a slow load, but not from one test to the next.
_LONGEST_GAP_MS = 15_000


@dataclass(frozen=True)
class Query:
    """An expression and the legend of its series."""

    expr: str
    legend: str


def series(
    *queries: Query, stacked: bool = False, bars: bool = False, log: bool = False
) -> timeseries.Panel:
    """Return lines over time from 0 up, with their last and highest values in the legend; with
    `log` response times on a logarithmic axis, which has no 0 to fill from.
    """
    panel = (
        timeseries.Panel()
        .legend(_legend(LegendPlacement.BOTTOM, "lastNotNull", "max"))
        .tooltip(common.VizTooltipOptions().mode(TooltipDisplayMode.MULTI))
        .min(0)
        .line_width(1)
        .fill_opacity(60 if bars else 20 if stacked else 0 if log else 5)
        .show_points(VisibilityMode.NEVER)
        .span_nulls(_LONGEST_GAP_MS)
        .draw_style(GraphDrawStyle.BARS if bars else GraphDrawStyle.LINE)
    )
    if stacked or bars:
        panel.stacking(common.StackingConfig().mode(StackingMode.NORMAL).group("A"))
    _add_queries(panel, queries)
    return logarithmic(panel) if log else panel


def place_legend_right(panel: timeseries.Panel) -> timeseries.Panel:
    """Adapt the panel to a dozen or more series: put the legend on the right."""
    return panel.legend(_legend(LegendPlacement.RIGHT, "max"))


def logarithmic(panel: Any) -> Any:
    """Draw response times on a logarithmic axis: they range from 1 ms to a minute."""
    scale = common.ScaleDistributionConfig().type(ScaleDistribution.LOG).log(10)
    return panel.scale_distribution(scale).min(SHORTEST_SECONDS)


def draw_limit(panel: Any, name: str, limit: float) -> Any:
    """Add a dashed line at a limit, on the axis of the series with that name."""
    return panel.override_by_regexp(
        name,
        [
            DynamicConfigValue("thresholds", steps((None, "transparent"), (limit, BAD)).build()),
            DynamicConfigValue("custom.thresholdsStyle", {"mode": GraphTresholdsStyleMode.DASHED}),
        ],
    )


def draw_dashed(panel: Any, pattern: str) -> Any:
    """Draw the series with matching names as limits: dashed, not filled."""
    return panel.override_by_regexp(
        pattern,
        [
            DynamicConfigValue("custom.lineStyle", {"fill": "dash", "dash": [8, 8]}),
            DynamicConfigValue("custom.fillOpacity", 0),
            DynamicConfigValue("custom.stacking", {"mode": "none", "group": "limits"}),
            *_colour(LIMIT),
        ],
    )


def add_right_axis(panel: Any, name: str, unit: str, colour: str | None = None) -> Any:
    """Give the series `name` a separate axis on the right; logarithmic for seconds."""
    log = {"type": ScaleDistribution.LOG, "log": 10}
    seconds = [
        DynamicConfigValue("custom.scaleDistribution", log),
        DynamicConfigValue("min", SHORTEST_SECONDS),
    ]
    properties = [
        *(seconds if unit == "s" else []),
        DynamicConfigValue("unit", unit),
        *([DynamicConfigValue("custom.axisSoftMax", SMALL_SHARE)] if unit == "percentunit" else []),
        DynamicConfigValue("custom.axisPlacement", AxisPlacement.RIGHT),
        DynamicConfigValue("custom.drawStyle", "line"),
        DynamicConfigValue("custom.fillOpacity", 0),
        DynamicConfigValue("custom.stacking", {"mode": "none", "group": "right"}),
    ]
    return panel.override_by_name(name, properties + _colour(colour))


def set_colours(panel: Any, colours: Mapping[str, str]) -> Any:
    """Give series fixed colours by name, the same on every dashboard."""
    for name, colour in colours.items():
        panel.override_by_name(name, _colour(colour))
    return panel


def set_reds(panel: Any) -> Any:
    """Give series that are named by a status different reds: the last match counts."""
    for pattern, colour in _REDS.items():
        panel.override_by_regexp(pattern, _colour(colour))
    return panel


_REDS = {
    "^0 .*": "dark-red",
    "^4.*": "super-light-red",
    "^5.*": "red",
    "^502.*": "semi-dark-red",
    "^504.*": "light-red",
}


def number(query: Query, *levels: tuple[float | None, str], over_range: bool = False) -> stat.Panel:
    """Return one value with a small graph, coloured by `levels` (lower threshold, colour).

    With `over_range` the value covers the dashboard's whole range, from one instant query.
    """
    panel = (
        stat.Panel()
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .graph_mode(BigValueGraphMode.NONE if over_range else BigValueGraphMode.AREA)
        .color_mode(BigValueColorMode.VALUE)
        .thresholds(steps(*(levels or ((None, NEUTRAL),))))
        .color_scheme(FieldColor().mode(FieldColorModeId.THRESHOLDS))
    )
    _add_queries(panel, [query], instant=over_range)
    return panel


def rows(
    keys: Sequence[str],
    columns: Sequence[tuple[str, str, str]],
    widths: Mapping[str, int],
    *,
    by_key: bool = False,
) -> table.Panel:
    """Return a table of values over the dashboard's range: one row per value of the labels `keys`.

    `columns` are (title, expression, unit). The rows are sorted by the first of them, the highest
    first; or by the first key.
    """
    order = common.TableSortByFieldState().display_name(keys[0] if by_key else columns[0][0])
    panel = table.Panel().sort_by([order.desc(not by_key)])
    names = {key: key for key in keys}
    for index, (title, expr, unit) in enumerate(columns):
        ref = chr(ord("A") + index)
        query = Dataquery().expr(expr).ref_id(ref).instant().format(PromQueryFormat.TABLE)
        panel.with_target(query)
        names[f"Value #{ref}"] = title
        panel.override_by_name(title, [DynamicConfigValue("unit", unit)])
    for title, width in widths.items():
        panel.override_by_name(title, [DynamicConfigValue("custom.width", width)])
    panel.with_transformation(DataTransformerConfig(id_val="merge", options={}))
    return panel.with_transformation(_select_columns(names))


def heat_map(expr: str) -> heatmap.Panel:
    """Return a heat map over time, with one row per bucket of a classic histogram (`le`)."""
    query = Dataquery().expr(expr).ref_id("A").format(PromQueryFormat.HEATMAP)
    colour = (
        heatmap.HeatmapColorOptions()
        .mode(HeatmapColorMode.SCHEME)
        .scheme("Oranges")
        .scale(HeatmapColorScale.EXPONENTIAL)
        .exponent(0.5)
        .steps(64)
    )
    return (
        heatmap.Panel()
        .with_target(query.range().legend_format("{{le}}"))
        .color(colour)
        .cell_values(heatmap.CellValues().unit("reqps").decimals(1))
        .y_axis(heatmap.YAxisConfig().unit("s").axis_placement(AxisPlacement.LEFT))
        .filter_values(heatmap.FilterValueRange().le(1e-9))
        .show_legend()
        .show_tooltip()
    )


def _add_queries(panel: Any, queries: Sequence[Query], *, instant: bool = False) -> None:
    for index, item in enumerate(queries):
        query = Dataquery().expr(item.expr).legend_format(item.legend)
        query.ref_id(chr(ord("A") + index))
        panel.with_target(query.instant() if instant else query.range())


def _legend(placement: LegendPlacement, *statistics: str) -> common.VizLegendOptions:
    legend = common.VizLegendOptions().display_mode(LegendDisplayMode.TABLE).show_legend(True)
    return legend.placement(placement).calcs(list(statistics))


def steps(*levels: tuple[float | None, str]) -> ThresholdsConfig:
    """Return thresholds that set the colour from each level on; None is the lowest level."""
    thresholds = [Threshold(value=value, color=colour) for value, colour in levels]
    return ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(thresholds)


def _colour(colour: str | None) -> list[DynamicConfigValue]:
    if colour is None:
        return []
    return [DynamicConfigValue("color", {"mode": "fixed", "fixedColor": colour})]


def _select_columns(names: Mapping[str, str]) -> DataTransformerConfig:
    """Keep only these columns, in this order and with these titles."""
    options = {
        "excludeByName": {"Time": True},
        "indexByName": {name: index for index, name in enumerate(names)},
        "renameByName": dict(names),
    }
    return DataTransformerConfig(id_val="organize", options=options)
