"""The backend's own totals, read from its metrics port: exact, whatever was scraped when."""

from dataclasses import dataclass
from typing import Any

import httpx
from prometheus_client.parser import text_string_to_metric_families

from lab.errors import LabError
from lab.settings import Settings


@dataclass(frozen=True)
class Counters:
    """Running totals: bodies made, by route; answers of each cache, by layer and outcome."""

    builds: dict[str, float]
    cache: dict[tuple[str, str], float]

    def since(self, before: "Counters") -> "Counters":
        """What was counted from `before` until now."""
        return Counters(
            {k: v - before.builds.get(k, 0) for k, v in self.builds.items()},
            {k: v - before.cache.get(k, 0) for k, v in self.cache.items()},
        )

    @property
    def built(self) -> float:
        return sum(self.builds.values())

    def by_layer(self) -> dict[str, dict[str, int]]:
        """{layer: {outcome: count}}, of layers that were asked at all."""
        found: dict[str, dict[str, int]] = {}
        for (layer, outcome), count in self.cache.items():
            if count:
                found.setdefault(layer, {})[outcome] = int(count)
        return found


def read_counters(settings: Settings) -> Counters:
    """The totals now.

    Raises:
        LabError: the metrics port does not answer.
    """
    url = settings.metrics_url
    try:
        text = httpx.get(url, timeout=10).raise_for_status().text
    except httpx.HTTPError as error:
        raise LabError(
            f"The backend's metrics at {url} can't be read ({error}). See `lab logs "
            "backend-metrics`."
        ) from None
    samples = [
        sample for family in text_string_to_metric_families(text) for sample in family.samples
    ]
    return Counters(
        {s.labels["route"]: s.value for s in samples if s.name == "lab_body_builds_total"},
        {_layer(s): s.value for s in samples if s.name == "lab_cache_answers_total"},
    )


def _layer(sample: Any) -> tuple[str, str]:
    return sample.labels["layer"], sample.labels["outcome"]
