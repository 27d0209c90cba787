"""XY charts: one metric over another.

The queries become one data frame with a column each. The chart names its columns in the format of
Grafana 11 and later; the SDK has only the older format.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from grafana_foundation_sdk.builders import common
from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.builders.xychart import Panel
from grafana_foundation_sdk.models import dashboard
from grafana_foundation_sdk.models.common import (
    AxisPlacement,
    LegendDisplayMode,
    LegendPlacement,
)
from grafana_foundation_sdk.models.dashboard import DataTransformerConfig, DynamicConfigValue
from grafana_foundation_sdk.models.xychart import ScatterShow

from grafana.src.panels import logarithmic

POINT_PIXELS = 5
# Without a version, Grafana takes the options for those of its version 9 and converts them.
_PLUGIN_VERSION = "13.0.0"


@dataclass(frozen=True)
class XYSeries:
    """One series: the names of its columns, its colour, and whether it is a line."""

    x: str
    y: str
    colour: str
    line: bool = False


@dataclass(frozen=True)
class Axes:
    """The labels of both axes, and whether the vertical one is logarithmic."""

    x: str
    y: str
    log: bool = False


class Scatter(Panel):
    """A panel with the columns of its series."""

    def __init__(self, plots: Sequence[XYSeries]) -> None:
        super().__init__()
        self._plots = plots

    def build(self) -> dashboard.Panel:
        panel = super().build()
        options: Any = panel.options
        panel.plugin_version = _PLUGIN_VERSION
        panel.options = {
            "mapping": "manual",
            "series": [_options(plot) for plot in self._plots],
            "legend": options.legend,
            "tooltip": {"mode": "single", "sort": "none"},
        }
        return panel


def scatter(columns: dict[str, str], plots: Sequence[XYSeries], axes: Axes) -> Scatter:
    """Return a chart of `columns` (expression by name), from 0 up on linear axes.

    A series with an empty column is not drawn.
    """
    panel = Scatter(plots)
    legend = common.VizLegendOptions().display_mode(LegendDisplayMode.LIST).show_legend(True)
    panel.legend(legend.placement(LegendPlacement.BOTTOM).calcs([])).min(0)
    panel.axis_label(axes.y)
    if axes.log:
        logarithmic(panel)
    for index, (name, expr) in enumerate(columns.items()):
        query = Dataquery().expr(expr).legend_format(name).ref_id(chr(ord("A") + index))
        panel.with_target(query.range().interval("5s"))
    options = {"byField": "Time", "mode": "outer"}
    panel.with_transformation(DataTransformerConfig(id_val="joinByField", options=options))
    for plot in plots:
        panel.override_by_name(plot.y, _style(plot))
    for name in dict.fromkeys(plot.x for plot in plots):
        panel.override_by_name(name, _x_axis(axes.x))
    return panel


def _style(plot: XYSeries) -> list[DynamicConfigValue]:
    show = ScatterShow.LINES if plot.line else ScatterShow.POINTS
    return [
        DynamicConfigValue("custom.show", show),
        DynamicConfigValue("custom.pointSize", {"fixed": POINT_PIXELS}),
        DynamicConfigValue("color", {"mode": "fixed", "fixedColor": plot.colour}),
        DynamicConfigValue("custom.axisPlacement", AxisPlacement.LEFT),
    ]


def _x_axis(label: str) -> list[DynamicConfigValue]:
    return [
        DynamicConfigValue("custom.axisLabel", label),
        DynamicConfigValue("custom.scaleDistribution", {"type": "linear"}),
        DynamicConfigValue("unit", "reqps"),
        DynamicConfigValue("min", 0),
    ]


def _options(plot: XYSeries) -> dict[str, object]:
    # The frame of all columns, after the transformation.
    frame = {"matcher": {"id": "byIndex", "options": 0}}
    columns = {"x": _column(plot.x), "y": _column(plot.y)}
    # Without a column of colours, which before Grafana 12.1 can't be that of the values.
    return {"name": {"fixed": plot.y}, "frame": frame, **columns}


def _column(name: str) -> dict[str, object]:
    return {"matcher": {"id": "byName", "options": name}}
