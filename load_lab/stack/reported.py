"""Query the running services for their settings, delays and counters."""

from dataclasses import dataclass
from typing import Any

import httpx
from prometheus_client.parser import text_string_to_metric_families
from tenacity import Retrying, retry_if_result, wait_fixed

from load_lab.errors import LabError
from load_lab.settings import Settings
from load_lab.stack import http
from load_lab.stack.backlog import Backlog
from load_lab.stack.reference import LIST


def query_backend(settings: Settings, token: str) -> dict[str, Any]:
    """Return what the backend reports: settings, server, versions, debug.

    Raises:
        LabError: it does not respond.
    """
    return _fetch_json(f"{settings.backend_url}/lab/settings", {"X-Lab-Token": token})


def query_latency(settings: Settings, token: str) -> dict[str, Any]:
    """Return round trips from the backend to Postgres and the time of a new connection, in ms, and
    the authentication method.

    Raises:
        LabError: the backend does not respond.
    """
    # The response takes some tens of delays, each up to a second.
    url = f"{settings.backend_url}/lab/latency"
    return _fetch_json(url, {"X-Lab-Token": token}, seconds=90)


def query_nginx(settings: Settings) -> dict[str, Any]:
    """Return the settings that Nginx runs with; the response is part of its configuration.

    Raises:
        LabError: it does not respond.
    """
    return _fetch_json(f"{settings.nginx_status_url}/settings")


def wait_for_api(settings: Settings, seconds: float = 60) -> None:
    """Wait until the reference app, if it runs, answers a request for its list.

    Raises:
        LabError: it did not answer within `seconds`, from the last request of its backlog on.
    """
    if settings.LAB_REFERENCE_APP == "off":
        return
    backlog = Backlog("backend", settings.LAB_BACKEND_PORT, seconds)
    poll = Retrying(
        retry=retry_if_result(bool),
        wait=wait_fixed(0.1),
        stop=backlog,
        retry_error_callback=lambda state: state.outcome and state.outcome.result(),
    )
    if problem := poll(api_problem, settings):
        raise LabError(
            f"The API does not answer at {settings.target_url} within {seconds:.0f} s ({problem})."
            f"{backlog.problem} See `lab status` and `lab logs backend`."
        )


def api_problem(settings: Settings) -> str:
    """Return why the reference app does not answer a request for its list; empty if it does."""
    try:
        http.get(f"{settings.target_url}{LIST}", timeout=5).raise_for_status()
    except httpx.HTTPError as error:
        return (str(error) or type(error).__name__).splitlines()[0]
    return ""


def _fetch_json(
    url: str, headers: dict[str, str] | None = None, seconds: float = 10
) -> dict[str, Any]:
    try:
        return dict(http.get(url, headers=headers, timeout=seconds).raise_for_status().json())
    except httpx.HTTPStatusError as error:
        response = error.response
        raise LabError(
            f"{url} answers {response.status_code}: {response.text[:200]}. See `lab logs`."
        ) from None
    except (httpx.HTTPError, ValueError) as error:
        raise LabError(f"{url} does not answer ({error}). See `lab logs`.") from None


@dataclass(frozen=True)
class Counters:
    """Running totals: response bodies built, by route; cache lookups, by layer and outcome."""

    builds: dict[str, float]
    cache: dict[tuple[str, str], float]

    def since(self, before: "Counters") -> "Counters":
        """Return the counts from `before` until now."""
        return Counters(
            {k: v - before.builds.get(k, 0) for k, v in self.builds.items()},
            {k: v - before.cache.get(k, 0) for k, v in self.cache.items()},
        )

    @property
    def total_builds(self) -> float:
        return sum(self.builds.values())

    def by_layer(self) -> dict[str, dict[str, int]]:
        """Return {layer: {outcome: count}} of the layers with at least one lookup."""
        layers: dict[str, dict[str, int]] = {}
        for (layer, outcome), count in self.cache.items():
            if count:
                layers.setdefault(layer, {})[outcome] = int(count)
        return layers


def read_counters(settings: Settings) -> Counters:
    """Return the current totals.

    Raises:
        LabError: the metrics port does not respond.
    """
    url = settings.metrics_url
    try:
        text = http.get(url, timeout=10).raise_for_status().text
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
        {
            (s.labels["layer"], s.labels["outcome"]): s.value
            for s in samples
            if s.name == "lab_cache_answers_total"
        },
    )
