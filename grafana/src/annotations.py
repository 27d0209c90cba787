"""Annotations of the dashboards: start and end of tests, and changes of settings."""

from collections.abc import Mapping

from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models.dashboard import AnnotationQuery, DataSourceRef

from grafana.src.queries import marks
from grafana.src.queries.comparison import from_start
from grafana.src.queries.selection import chosen

_LAYERS = (
    "server {{lab_server}} × {{lab_workers}}, detail {{lab_detail}}, booking {{lab_booking}}, "
    "local cache {{lab_local_cache}}, Redis {{lab_redis_cache}}, Nginx {{lab_nginx_cache}} "
    "{{lab_nginx_cache_ttl}}, shed {{lab_shed}}, pool {{lab_db_pool}}"
)


def of_tests(tests: str) -> "list[Mark]":
    """Return the annotations of a dashboard about these runs."""
    return [
        Mark("test start", marks.test_starts(tests), "green", "{{testid}}"),
        Mark("test end", marks.test_ends(tests), "blue", "{{testid}}"),
        Mark("layer switch", marks.layer_switches(), "purple", _LAYERS),
    ]


def of_compared(sides: Mapping[str, str]) -> "list[Mark]":
    """Return the annotations of two runs aligned at their start, by the variables' suffixes."""
    return [
        Mark(f"{name}: {mark.name}", from_start(mark.expr, side), mark.colour, mark.text)
        for name, side in sides.items()
        for mark in of_tests(chosen(f"testid_{side}"))
    ]


class _Asked(AnnotationQuery):
    """A Prometheus annotation: the SDK has only the fields that all data sources share."""

    text: str

    def to_json(self) -> dict[str, object]:
        # Marks closer together than the step become one mark; Grafana's default is 60 s.
        own = {"step": "5s", "titleFormat": self.name, "textFormat": self.text, "tagKeys": ""}
        return {**super().to_json(), **own}


class Mark(Builder[AnnotationQuery]):
    """One annotation. The SDK accepts only builders."""

    def __init__(self, name: str, expr: str, colour: str, text: str) -> None:
        self.name, self.expr, self.colour, self.text = name, expr, colour, text

    def build(self) -> AnnotationQuery:
        mark = _Asked(
            name=self.name,
            expr=self.expr,
            icon_color=self.colour,
            datasource=DataSourceRef(type_val="prometheus", uid="prometheus"),
            enable=True,
            hide=False,
        )
        mark.text = self.text
        return mark
