"""XY charts: one metric over another. Grafana 9.4 calls them alpha.

The queries become one data frame with a column each. A chart names its columns in the format of
Grafana 9.4; later versions convert it when they load the dashboard.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from grafana_foundation_sdk.builders import common
from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.builders.xychart import Panel
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models.common import (
    AxisPlacement,
    ColorDimensionConfig,
    LegendDisplayMode,
    LegendPlacement,
    ScaleDimensionConfig,
)
from grafana_foundation_sdk.models.dashboard import DataTransformerConfig, DynamicConfigValue
from grafana_foundation_sdk.models.xychart import ScatterSeriesConfig, ScatterShow, SeriesMapping

from grafana.src.panels import BAD, GOOD, steps

POINT_PIXELS = 5


@dataclass(frozen=True)
class XYSeries:
    """One series: the names of its columns, its colour, and whether it is a line.

    Without a colour each point gets the colour of its value: see `scatter`.
    """

    x: str
    y: str
    colour: str | None = None
    line: bool = False


def scatter(
    columns: dict[str, str], plots: Sequence[XYSeries], labels: tuple[str, str], limit: float
) -> Panel:
    """Return a chart of `columns` (expression by name), from 0 up on both axes.

    A series with an empty column is not drawn. Points without a colour are red above `limit`.
    """
    x_label, y_label = labels
    panel = (
        Panel()
        .series_mapping(SeriesMapping.MANUAL)
        .series([_SeriesBuilder(plot) for plot in plots])
    )
    legend = common.VizLegendOptions().display_mode(LegendDisplayMode.LIST).show_legend(True)
    panel.legend(legend.placement(LegendPlacement.BOTTOM).calcs([])).min(0)
    panel.axis_label(y_label).thresholds(steps((None, GOOD), (limit, BAD)))
    for index, (name, expr) in enumerate(columns.items()):
        query = Dataquery().expr(expr).legend_format(name).ref_id(chr(ord("A") + index))
        panel.with_target(query.range().interval("5s"))
    options = {"byField": "Time", "mode": "outer"}
    panel.with_transformation(DataTransformerConfig(id_val="joinByField", options=options))
    for plot in plots:
        panel.override_by_name(plot.y, _style(plot))
    for name in dict.fromkeys(plot.x for plot in plots):
        panel.override_by_name(name, _x_axis(x_label))
    return panel


def _style(plot: XYSeries) -> list[DynamicConfigValue]:
    show = ScatterShow.LINES if plot.line else ScatterShow.POINTS
    colour = {"mode": "fixed", "fixedColor": plot.colour}
    return [
        DynamicConfigValue("custom.show", show),
        DynamicConfigValue("color", colour if plot.colour else {"mode": "thresholds"}),
        DynamicConfigValue("custom.axisPlacement", AxisPlacement.LEFT),
    ]


def _x_axis(label: str) -> list[DynamicConfigValue]:
    return [
        DynamicConfigValue("custom.axisLabel", label),
        DynamicConfigValue("unit", "reqps"),
        DynamicConfigValue("min", 0),
    ]


class _FramedSeries(ScatterSeriesConfig):
    """Series with the data frame that later versions need; without it they count the series."""

    def to_json(self) -> dict[str, object]:
        return {**super().to_json(), "frame": 0}


class _SeriesBuilder(Builder[ScatterSeriesConfig]):
    def __init__(self, plot: XYSeries) -> None:
        self._plot = plot

    def build(self) -> ScatterSeriesConfig:
        size = ScaleDimensionConfig(min_val=1, max_val=20, fixed=POINT_PIXELS)
        return _FramedSeries(
            x=self._plot.x,
            y=self._plot.y,
            name=self._plot.y,
            point_color=_point_colour(self._plot),
            point_size=size,
        )


def _point_colour(plot: XYSeries) -> ColorDimensionConfig:
    if plot.colour:
        return ColorDimensionConfig(fixed=plot.colour)
    return ColorDimensionConfig(field=plot.y)
