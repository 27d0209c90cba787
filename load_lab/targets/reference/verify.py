"""Verify from its behaviour that each layer is really on, before a measurement."""

from dataclasses import dataclass, field

import httpx

from load_lab.errors import LabError
from load_lab.settings import Settings
from load_lab.stack.engine import Engine
from load_lab.stack.http import certificates
from load_lab.stack.reference import LIST
from load_lab.stack.reported import Counters, query_backend, query_nginx, read_counters

# Django's own 404, which Nginx does not cache.
_UNKNOWN_PATH = "/lab-asks-who-answers/"

# Each process caches its own pages, and which one responds is random: enough tries to reach one
# twice.
_TRIES = 20


def _k6_client() -> httpx.Client:
    """Return a client that, like k6, requests no compression: another encoding is another page."""
    return httpx.Client(timeout=60, headers={"Accept-Encoding": "identity"}, verify=certificates())


@dataclass(frozen=True)
class Target:
    """The running stack, as the probes use it."""

    settings: Settings
    token: str
    client: httpx.Client = field(default_factory=_k6_client)

    def get(self, base: str, path: str, headers: dict[str, str] | None = None) -> httpx.Response:
        """Return a response with status 200.

        Raises:
            LabError: the status is another, or there is no response.
        """
        try:
            response = self.client.get(f"{base}{path}", headers=headers)
        except httpx.HTTPError as error:
            raise LabError(f"{base}{path} does not answer: {error}.") from None
        if response.status_code != httpx.codes.OK:
            raise LabError(f"{base}{path} answers {response.status_code}: {response.text[:200]}")
        return response

    def pages(self) -> list[str]:
        """Return the path of each hotel's detail page, requested past the caches."""
        response = self.get(self.settings.backend_url, LIST, {"X-Lab-Token": self.token})
        return [f"{LIST}{hotel['id']}/" for hotel in response.json()]


def target_of(engine: Engine, settings: Settings) -> Target:
    return Target(settings, engine.token())


def active_caches(settings: Settings) -> dict[str, str]:
    """Return the cache layers that are on, the backend's and Nginx's, with their modes."""
    modes = {
        "local": settings.LAB_LOCAL_CACHE,
        "redis": settings.LAB_REDIS_CACHE,
        "nginx": settings.LAB_NGINX_CACHE,
    }
    return {layer: mode for layer, mode in modes.items() if mode != "off"}


def verify(target: Target) -> None:
    """Check the settings, which server responds, each layer's behaviour, and the body.

    Leaves pages in the caches that are on.

    Raises:
        LabError: something differs from the settings; the message has what was found.
    """
    _check_settings(target)
    _check_server(target)
    # Caches store a hotel's page. Without any cache it would be built five times, half a second
    # each; the list takes the same path.
    path = target.pages()[0] if active_caches(target.settings) else LIST
    body = target.get(target.settings.backend_url, path, {"X-Lab-Token": target.token}).content
    _check_backend_layers(target, path)
    _check_nginx_layer(target, path)
    if target.get(target.settings.target_url, path).content != body:
        raise LabError(f"{path} through the caches differs from the page that Postgres gives.")


def _check_settings(target: Target) -> None:
    report = query_backend(target.settings, target.token)
    if report["debug"]:
        raise LabError("The backend runs with DEBUG on, so results would be void. Unset DEBUG.")
    _check_same("backend", report["settings"], target.settings)
    _check_same("Nginx", query_nginx(target.settings), target.settings)


def _check_server(target: Target) -> None:
    """Check which server responds at its own port and behind Nginx; each worker reports its own."""
    settings, token = target.settings, {"X-Lab-Token": target.token}
    servers: dict[str, str] = {f"{settings.backend_url}{_UNKNOWN_PATH}": settings.LAB_SERVER}
    servers[f"{settings.target_url}{_UNKNOWN_PATH}"] = settings.LAB_SERVER
    if settings.LAB_SECOND_SERVER != "off":
        servers[f"{settings.target_url}/async{_UNKNOWN_PATH}"] = settings.LAB_SECOND_SERVER
    for url, expected in servers.items():
        try:
            actual = target.client.get(url, headers=token).headers.get("X-Lab-Server")
        except httpx.HTTPError as error:
            raise LabError(f"{url} does not answer: {error}.") from None
        if actual != expected:
            raise LabError(
                f"{url} was answered by {actual or 'an unknown server'}, but the settings require "
                f"{expected}. See `lab status` and `lab logs backend`."
            )


def _check_same(name: str, actual: dict[str, str], settings: Settings) -> None:
    expected = settings.as_env()
    differences = {k: v for k, v in actual.items() if expected[k] != v}
    if differences:
        raise LabError(f"{name} runs with other settings: {differences}. Try `lab set` again.")


def _check_backend_layers(target: Target, path: str) -> None:
    """Request a page from the backend until each layer that is on, and no other, had a hit."""
    on = set(active_caches(target.settings)) - {"nginx"}
    before = read_counters(target.settings)
    for _ in range(_TRIES):
        target.get(target.settings.backend_url, path)
        counts = read_counters(target.settings).since(before)
        if on <= _hit_layers(counts) or not on:
            break
    if _hit_layers(counts) != on:
        raise LabError(
            f"The backend answered from these caches: {_names(_hit_layers(counts))}; the settings "
            f"require: {_names(on)}. Counted: {counts.by_layer()}. See `lab logs backend`."
        )
    if not on and counts.total_builds < 1:
        raise LabError("Every cache is off, but the backend built no page. See `lab logs backend`.")


def _hit_layers(counts: Counters) -> set[str]:
    return {layer for layer, outcomes in counts.by_layer().items() if outcomes.get("hit")}


def _check_nginx_layer(target: Target, path: str) -> None:
    statuses = [
        target.get(target.settings.target_url, path).headers.get("X-Cache-Status") for _ in range(2)
    ]
    expected = [None, None] if target.settings.LAB_NGINX_CACHE == "off" else ["MISS", "HIT"]
    if statuses != expected:
        raise LabError(
            f"LAB_NGINX_CACHE={target.settings.LAB_NGINX_CACHE}, but two requests for a page said "
            f"X-Cache-Status {statuses} instead of {expected}. See `lab logs nginx-error`."
        )


def _names(layers: set[str]) -> str:
    return ", ".join(sorted(layers)) or "none"
