"""Client of Prometheus's HTTP API."""

import math
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import httpx

from load_lab.errors import LabError
from load_lab.metrics.counters import Histogram, Labels, Series, parse_histogram
from load_lab.stack import http

# A push may arrive this late; then the early stop does not look at the run any more.
_LATE_SECONDS = 5


class PrometheusUnavailable(LabError):
    """Prometheus does not respond."""


class SampleSource(Protocol):
    """Stored samples by labels, with their stored timestamps (Unix time)."""

    def samples(self, selector: str, start: float, end: float) -> Mapping[Labels, Series]: ...

    def histograms(
        self, selector: str, start: float, end: float
    ) -> Mapping[Labels, Mapping[float, Histogram]]: ...


class Prometheus:
    def __init__(self, url: str, timeout_seconds: float = 30) -> None:
        self._url = url
        self._timeout = timeout_seconds

    def instant(self, query: str, at: float | None = None) -> float | None:
        """Return the single value of `query` at Unix time `at` (default: now); None without a
        value.
        """
        return next(iter(self._values(query, at).values()), None)

    def instant_by_label(self, query: str, label: str, at: float | None = None) -> dict[str, float]:
        """Like `instant`, keyed by the value of `label`."""
        return self._values(query, at, label)

    def _values(self, query: str, at: float | None, label: str = "") -> dict[str, float]:
        """Query at one moment. Prometheus rounds it to milliseconds, so the returned times are
        ignored.
        """
        params = {} if at is None else {"time": at}
        items = self._get("query", {"query": query, **params})["result"]
        values = {item["metric"].get(label, ""): float(item["value"][1]) for item in items}
        return {name: value for name, value in values.items() if not math.isnan(value)}

    def samples(self, selector: str, start: float, end: float) -> dict[Labels, Series]:
        """Return the stored samples of `selector`, with their stored timestamps."""
        items = self._stored(selector, start, end)
        return {_labels(item): _series(item["values"]) for item in items if "values" in item}

    def histograms(
        self, selector: str, start: float, end: float
    ) -> dict[Labels, dict[float, Histogram]]:
        """Like `samples`, of native histograms."""
        return {
            _labels(item): {float(at): parse_histogram(each) for at, each in item["histograms"]}
            for item in self._stored(selector, start, end)
            if "histograms" in item
        }

    def _stored(self, selector: str, start: float, end: float) -> Any:
        query = f"{selector}[{math.ceil((end - start) * 1000)}ms]"
        return self._get("query", {"query": query, "time": end})["result"]

    def by_label(
        self, query: str, label: str, start: float, end: float, step: float = 1
    ) -> dict[str, Series]:
        """Like `over`, keyed by the value of `label`."""
        params = {"query": query, "start": start, "end": end, "step": step}
        items = self._get("query_range", params)["result"]
        return {item["metric"].get(label, ""): _series(item["values"]) for item in items}

    def _get(self, path: str, params: dict[str, Any]) -> Any:
        try:
            response = http.get(f"{self._url}/api/v1/{path}", params=params, timeout=self._timeout)
            document = response.json()
        except (httpx.HTTPError, ValueError) as error:
            raise PrometheusUnavailable(
                f"Prometheus at {self._url} does not answer ({error}). See `lab logs prometheus`."
            ) from None
        if document["status"] != "success":
            raise LabError(f"Prometheus refused a query: {document['error']}")
        return document["data"]


class KnownSamples:
    """A `SampleSource` that reads each sample only once: a ramp of minutes is looked at every
    second.
    """

    def __init__(self, prometheus: Prometheus) -> None:
        self._prometheus = prometheus
        self._known: dict[str, dict[Labels, dict[float, Any]]] = {}
        self._until: dict[str, float] = {}

    def samples(self, selector: str, start: float, end: float) -> Mapping[Labels, Series]:
        return self._read(self._prometheus.samples, selector, start, end)

    def histograms(
        self, selector: str, start: float, end: float
    ) -> Mapping[Labels, Mapping[float, Histogram]]:
        return self._read(self._prometheus.histograms, selector, start, end)

    def _read(
        self,
        read: Callable[[str, float, float], Mapping[Labels, Mapping[float, Any]]],
        selector: str,
        start: float,
        end: float,
    ) -> dict[Labels, dict[float, Any]]:
        known = self._known.setdefault(selector, {})
        since = max(start, self._until.get(selector, start) - _LATE_SECONDS)
        for labels, series in read(selector, since, end).items():
            known.setdefault(labels, {}).update(series)
        self._until[selector] = end
        return known


def _labels(item: dict[str, Any]) -> Labels:
    return frozenset(item["metric"].items())


def _series(values: list[list[Any]]) -> Series:
    pairs = ((float(at), float(value)) for at, value in values)
    return {at: value for at, value in pairs if not math.isnan(value)}
