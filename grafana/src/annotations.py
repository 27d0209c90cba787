"""What is marked on every dashboard: where a test begins and ends, and switched settings."""

from typing import Any

from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models.dashboard import AnnotationQuery, DataSourceRef

from grafana.src.queries import marks

_LAYERS = (
    "server {{lab_server}} × {{lab_workers}}, detail {{lab_detail}}, booking {{lab_booking}}, "
    "local cache {{lab_local_cache}}, Redis {{lab_redis_cache}}, Nginx {{lab_nginx_cache}} "
    "{{lab_nginx_cache_ttl}}, shed {{lab_shed}}, pool {{lab_db_pool}}"
)


def of(tests: str) -> "list[Mark]":
    """The annotations of a dashboard about these runs."""
    return [
        Mark("test start", marks.test_starts(tests), "green", "{{testid}}"),
        Mark("test end", marks.test_ends(tests), "blue", "{{testid}}"),
        Mark("layer switch", marks.layer_switches(), "purple", _LAYERS),
    ]


class _Asked(AnnotationQuery):
    """An annotation from Prometheus; the SDK knows only the fields that all sources share."""

    text: str

    def to_json(self) -> dict[str, object]:
        # The step is the time within which marks are one mark; Grafana's default is 60 s.
        own = {"step": "5s", "titleFormat": self.name, "textFormat": self.text, "tagKeys": ""}
        return {**super().to_json(), **own}


class Mark(Builder[AnnotationQuery]):
    """One annotation; a class because the SDK takes builders only."""

    def __init__(self, name: str, expr: str, colour: str, text: str) -> None:
        self._fields: dict[str, Any] = {"name": name, "expr": expr, "icon_color": colour}
        self._text = text

    def build(self) -> AnnotationQuery:
        source = DataSourceRef(type_val="prometheus", uid="prometheus")
        mark = _Asked(datasource=source, enable=True, hide=False, **self._fields)
        mark.text = self._text
        return mark
