"""One dashboard under construction: the parts that all dashboards and panels share."""

from collections.abc import Sequence
from typing import Any

from grafana_foundation_sdk.builders.dashboard import Dashboard
from grafana_foundation_sdk.builders.dashboard import DashboardLink as Link
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DashboardLinkType,
    DataSourceRef,
    VariableModel,
)

from grafana.src import annotations, guide

TAG = "load-lab"
SOURCE = DataSourceRef(type_val="prometheus", uid="prometheus")
# Prometheus's scrape interval.
REFRESH = "5s"


class Page:
    """A dashboard, filled with panels from left to right; a row is 24 columns wide."""

    def __init__(
        self,
        uid: str,
        title: str,
        question: str,
        variables: Sequence[Builder[VariableModel]],
        *,
        annotations: Sequence[annotations.Annotation],
        links: Sequence[Link] = (),
        time: tuple[str, str] = ("now-15m", "now"),
        tag: str = TAG,
    ) -> None:
        self.uid = uid
        self._section = title
        self._next_id = 1
        self.dashboard = (
            Dashboard(title)
            .uid(uid)
            .description(question)
            .tags([tag])
            .time(*time)
            .refresh(REFRESH)
            .readonly()
            .tooltip(DashboardCursorSync.CROSSHAIR)
        )
        for variable in variables:
            self.dashboard.with_variable(variable)
        for annotation in annotations:
            self.dashboard.annotation(annotation)
        self._links(links)

    def add(
        self, panel: Any, title: str, description: str, unit: str, size: tuple[int, int]
    ) -> None:
        """Add a panel of `size` (columns, rows); its link opens its section of the docs."""
        width, height = size
        guide_link = (
            Link("How to read it").type(DashboardLinkType.LINK).url(guide.address(self._section))
        )
        panel.id(self._next_id).title(title).description(description).unit(unit)
        panel.datasource(SOURCE).span(width).height(height).links([guide_link.target_blank(True)])
        self.dashboard.with_panel(panel)
        self._next_id += 1

    def _links(self, links: Sequence[Link]) -> None:
        for each in links or _links_of_range():
            self.dashboard.link(each)
        guide_link = Link("How to read it").type(DashboardLinkType.LINK).icon("doc")
        self.dashboard.link(guide_link.url(guide.address(self._section)))


def link(title: str, url: str) -> Link:
    return Link(title).type(DashboardLinkType.LINK).icon("external link").url(url)


def _links_of_range() -> list[Link]:
    """Return the links to the dashboards with the same range and tests, and to "Compare", which has
    a range of its own.
    """
    others = Link("Dashboards").type(DashboardLinkType.DASHBOARDS).tags([TAG]).as_dropdown(True)
    others.icon("external link").keep_time(True).include_vars(True)
    return [others, link("Compare", "/d/lab-compare?var-testid_a=${last}")]
