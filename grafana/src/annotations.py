"""Annotations of the dashboards: starts, ends and breaks of tests, and changes of settings."""

from collections.abc import Callable, Mapping

from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models.dashboard import AnnotationQuery, DataSourceRef

from grafana.src.queries import runs
from grafana.src.queries.comparison import align_to_start
from grafana.src.queries.selection import variable_matcher

_LAYERS = (
    "server {{lab_server}} × {{lab_workers}}, detail {{lab_detail}}, booking {{lab_booking}}, "
    "local cache {{lab_local_cache}}, Redis {{lab_redis_cache}}, Nginx {{lab_nginx_cache}} "
    "{{lab_nginx_cache_ttl}}, shed {{lab_shed}}, pool {{lab_db_pool}}"
)
# Name, colour and text of each kind of mark; its expression.
_Kind = tuple[str, str, str, Callable[[str], str]]
_OF_TESTS: tuple[_Kind, ...] = (
    ("test start", "green", "{{testid}}", runs.test_starts),
    ("test end", "blue", "{{testid}}", runs.test_ends),
    ("broke", "red", "{{testid}} broke: {{cause}}", runs.breaks),
)


def run_annotations(tests: str) -> "list[Annotation]":
    """Return the annotations of a dashboard about these runs."""
    return [
        *(Annotation(name, expr(tests), colour, text) for name, colour, text, expr in _OF_TESTS),
        Annotation("layer switch", runs.layer_switches(), "purple", _LAYERS),
    ]


def comparison_annotations(sides: Mapping[str, str]) -> "list[Annotation]":
    """Return the annotations of two runs aligned at their start, by the variables' suffixes."""
    switches: _Kind = ("layer switch", "purple", _LAYERS, runs.switches_during)
    return [
        Annotation(
            f"{name}: {kind}",
            align_to_start(expr(variable_matcher(f"testid_{side}")), side),
            colour,
            f"{name}: {text}",
        )
        for name, side in sides.items()
        for kind, colour, text, expr in (*_OF_TESTS, switches)
    ]


class _PrometheusQuery(AnnotationQuery):
    """A Prometheus annotation: the SDK has only the fields that all data sources share."""

    text: str

    def to_json(self) -> dict[str, object]:
        # Of two marks in one step, one is drawn. The least step; Grafana's default is 60 s.
        fields = {"step": "5s", "titleFormat": self.name, "textFormat": self.text, "tagKeys": ""}
        return {**super().to_json(), **fields}


class Annotation(Builder[AnnotationQuery]):
    """One annotation. The SDK accepts only builders."""

    def __init__(self, name: str, expr: str, colour: str, text: str) -> None:
        self.name, self.expr, self.colour, self.text = name, expr, colour, text

    def build(self) -> AnnotationQuery:
        annotation = _PrometheusQuery(
            name=self.name,
            expr=self.expr,
            icon_color=self.colour,
            datasource=DataSourceRef(type_val="prometheus", uid="prometheus"),
            enable=True,
            hide=False,
        )
        annotation.text = self.text
        return annotation
