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
class Cloud:
    """One series: the names of its columns, its colour, and whether it is a line.

    Without a colour each point gets the colour of its value: see `scatter`.
    """

    x: str
    y: str
    colour: str | None = None
    line: bool = False


def scatter(
    columns: dict[str, str], clouds: Sequence[Cloud], labels: tuple[str, str], bound: float
) -> Panel:
    """Return a chart of `columns` (expression by name), from 0 up on both axes.

    A series with an empty column is not drawn. Points without a colour are red above `bound`.
    """
    x_label, y_label = labels
    panel = Panel().series_mapping(SeriesMapping.MANUAL).series([_Series(c) for c in clouds])
    legend = common.VizLegendOptions().display_mode(LegendDisplayMode.LIST).show_legend(True)
    panel.legend(legend.placement(LegendPlacement.BOTTOM).calcs([])).min(0)
    panel.axis_label(y_label).thresholds(steps((None, GOOD), (bound, BAD)))
    for index, (name, expr) in enumerate(columns.items()):
        query = Dataquery().expr(expr).legend_format(name).ref_id(chr(ord("A") + index))
        panel.with_target(query.range().interval("5s"))
    joined = {"byField": "Time", "mode": "outer"}
    panel.with_transformation(DataTransformerConfig(id_val="joinByField", options=joined))
    for cloud in clouds:
        panel.override_by_name(cloud.y, _looks(cloud))
    for name in dict.fromkeys(cloud.x for cloud in clouds):
        panel.override_by_name(name, _x_axis(x_label))
    return panel


def _looks(cloud: Cloud) -> list[DynamicConfigValue]:
    show = ScatterShow.LINES if cloud.line else ScatterShow.POINTS
    fixed = {"mode": "fixed", "fixedColor": cloud.colour}
    return [
        DynamicConfigValue("custom.show", show),
        DynamicConfigValue("color", fixed if cloud.colour else {"mode": "thresholds"}),
        DynamicConfigValue("custom.axisPlacement", AxisPlacement.LEFT),
    ]


def _x_axis(label: str) -> list[DynamicConfigValue]:
    return [
        DynamicConfigValue("custom.axisLabel", label),
        DynamicConfigValue("unit", "reqps"),
        DynamicConfigValue("min", 0),
    ]


class _Framed(ScatterSeriesConfig):
    """Series with the data frame that later versions need; without it they count the series."""

    def to_json(self) -> dict[str, object]:
        return {**super().to_json(), "frame": 0}


class _Series(Builder[ScatterSeriesConfig]):
    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def build(self) -> ScatterSeriesConfig:
        size = ScaleDimensionConfig(min_val=1, max_val=20, fixed=POINT_PIXELS)
        return _Framed(
            x=self._cloud.x,
            y=self._cloud.y,
            name=self._cloud.y,
            point_color=_point_colour(self._cloud),
            point_size=size,
        )


def _point_colour(cloud: Cloud) -> ColorDimensionConfig:
    if cloud.colour:
        return ColorDimensionConfig(fixed=cloud.colour)
    return ColorDimensionConfig(field=cloud.y)
