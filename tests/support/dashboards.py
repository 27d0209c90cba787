"""The committed dashboards, and their queries as Grafana sends them."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx

from load_lab.paths import ROOT

FOLDER = ROOT / "grafana/dashboards"
STEP_SECONDS = 5


@dataclass(frozen=True)
class Expression:
    """One expression and its place in a dashboard."""

    dashboard: str
    place: str
    expr: str
    instant: bool = False

    def __str__(self) -> str:
        return f"dashboard {self.dashboard!r}, {self.place}, expression: {self.expr}"


def dashboards() -> list[dict[str, Any]]:
    """Return every provisioned dashboard, including the guide."""
    return [json.loads(file.read_text()) for file in sorted(FOLDER.glob("*.json"))]


def metric_dashboards() -> list[dict[str, Any]]:
    """Return the dashboards that query Prometheus."""
    return [d for d in dashboards() if any("targets" in p for p in d["panels"])]


def panel_expressions(dashboard: dict[str, Any]) -> Iterator[Expression]:
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            place = f"panel {panel['title']!r}"
            yield Expression(
                dashboard["title"], place, target["expr"], target.get("instant", False)
            )


def annotation_expressions(dashboard: dict[str, Any]) -> Iterator[Expression]:
    for mark in dashboard["annotations"]["list"]:
        if "expr" in mark:
            yield Expression(dashboard["title"], f"annotation {mark['name']!r}", mark["expr"])


class DashboardQueries:
    """Queries of one dashboard to Prometheus, with its variables resolved first."""

    def __init__(
        self,
        url: str,
        dashboard: dict[str, Any],
        start: float,
        end: float,
        *,
        step: int = STEP_SECONDS,
        **chosen: str,
    ) -> None:
        """`chosen` has the values of variables that are not the default."""
        self._url = url
        self._start, self._end, self._step = start, end, step
        self.empty_variables: list[str] = []
        self.values: dict[str, str] = {
            "__range": f"{int(end - start)}s",
            "__interval": f"{step}s",
            "__interval_ms": f"{step * 1000}",
            "__rate_interval": f"{max(step + STEP_SECONDS, 4 * STEP_SECONDS)}s",
        }
        for variable in dashboard["templating"]["list"]:
            name = variable["name"]
            self.values[name] = chosen.get(name) or self._default(variable)

    def result(self, expression: Expression) -> list[dict[str, Any]]:
        """Return the result of an expression, without series that have only NaN.

        Raises:
            AssertionError: Prometheus rejected it; names the dashboard, panel and expression.
        """
        response = self._query(expression.expr, instant=expression.instant)
        assert response["status"] == "success", f"{response['error']}: {expression}"
        return [series for series in response["data"]["result"] if _has_number(series)]

    def _default(self, variable: dict[str, Any]) -> str:
        """Return the default, or the first value, as Grafana does; all of them if that is it."""
        expr = re.fullmatch(r"query_result\((.*)\)", variable["query"]["query"], re.DOTALL)[1]
        response = self._query(expr, instant=True)
        assert response["status"] == "success", f"{response['error']}: variable {variable['name']}"
        texts = [_as_text(series) for series in response["data"]["result"]]
        matches = [re.search(variable["regex"].strip("/"), text) for text in texts]
        values = [match[1] for match in matches if match]
        if not values:
            self.empty_variables.append(variable["name"])
        default = "".join(variable.get("current", {}).get("value", ""))
        if default == "$__all":
            return "|".join(values)
        return default if default in values else (values[0] if values else "")

    def _query(self, expr: str, *, instant: bool) -> Any:
        query = re.sub(r"\$\{?(\w+)\}?", lambda match: self.values[match[1]], expr)
        if instant:
            path, params = "query", {"query": query, "time": self._end}
        else:
            times = {"start": self._start, "end": self._end, "step": self._step}
            path, params = "query_range", {"query": query, **times}
        return httpx.get(f"{self._url}/api/v1/{path}", params=params, timeout=30).json()


def _as_text(series: dict[str, Any]) -> str:
    """Return a series in the text format that query_result() gives to a variable's pattern."""
    labels = ",".join(f'{k}="{v}"' for k, v in series["metric"].items() if k != "__name__")
    at, value = series["value"]
    return f"{series['metric'].get('__name__', '')}{{{labels}}} {value} {int(at * 1000)}"


def _has_number(series: dict[str, Any]) -> bool:
    values = series.get("values") or [series.get("value")]
    # Native histograms are not in the values; no panel queries one.
    return any(pair and pair[1] != "NaN" for pair in values)
