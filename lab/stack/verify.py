"""Proof that a layer is really on, by what it does: asked before anything is measured."""

from dataclasses import dataclass, field

import httpx

from lab.errors import LabError
from lab.http import certificates
from lab.settings import Settings
from lab.stack.engine import Engine
from lab.stack.inspect import Counters, ask_backend, ask_nginx, read_counters

LIST = "/api/hotel/"
# Django's own 404, which no cache of Nginx keeps.
_NOWHERE = "/lab-asks-who-answers/"

# Processes keep pages of their own, and who answers is chance: enough to meet one of them twice.
_TRIES = 20


def _as_k6() -> httpx.Client:
    """A client that asks for no compression, as k6: another encoding would be another page."""
    return httpx.Client(timeout=60, headers={"Accept-Encoding": "identity"}, verify=certificates())


@dataclass(frozen=True)
class Target:
    """The running stack, as the probes ask it."""

    settings: Settings
    token: str
    client: httpx.Client = field(default_factory=_as_k6)

    def get(self, base: str, path: str, headers: dict[str, str] | None = None) -> httpx.Response:
        """One answer, which has to be a 200.

        Raises:
            LabError: it is not, or there is none.
        """
        try:
            answer = self.client.get(f"{base}{path}", headers=headers)
        except httpx.HTTPError as error:
            raise LabError(f"{base}{path} does not answer: {error}.") from None
        if answer.status_code != httpx.codes.OK:
            raise LabError(f"{base}{path} answers {answer.status_code}: {answer.text[:200]}")
        return answer

    def hotels(self) -> list[str]:
        """The paths of every hotel's detail, asked past the caches."""
        answer = self.get(self.settings.backend_url, LIST, {"X-Lab-Token": self.token})
        return [f"{LIST}{hotel['id']}/" for hotel in answer.json()]


def target_of(engine: Engine, settings: Settings) -> Target:
    """The probes' view of the running stack."""
    return Target(settings, engine.token())


def caches_on(settings: Settings) -> dict[str, str]:
    """The backend's own caches and Nginx', by their layers' names: those that may keep a page."""
    said = {
        "local": settings.LAB_LOCAL_CACHE,
        "redis": settings.LAB_REDIS_CACHE,
        "nginx": settings.LAB_NGINX_CACHE,
    }
    return {layer: value for layer, value in said.items() if value != "off"}


def verify(target: Target) -> None:
    """Check settings, who answers, each layer's behaviour, and the body.

    Leaves pages in the caches that are on.

    Raises:
        LabError: something is not as the settings say; with what was found.
    """
    _check_settings(target)
    _check_server(target)
    # A hotel's page is what caches are there for. Where none is on it would be made five times,
    # half a second each: the list goes the same way.
    path = target.hotels()[0] if caches_on(target.settings) else LIST
    truth = target.get(target.settings.backend_url, path, {"X-Lab-Token": target.token}).content
    _check_backend_layers(target, path)
    _check_nginx_layer(target, path)
    if target.get(target.settings.target_url, path).content != truth:
        raise LabError(f"{path} through the caches differs from the page that Postgres gives.")


def _check_settings(target: Target) -> None:
    said = ask_backend(target.settings, target.token)
    if said["debug"]:
        raise LabError("The backend runs with DEBUG on, so results would be void. Unset DEBUG.")
    _check_same("backend", said["settings"], target.settings)
    _check_same("Nginx", ask_nginx(target.settings), target.settings)


def _check_server(target: Target) -> None:
    """Who answers at the server's own port, and who behind Nginx; each worker says it of itself."""
    settings, token = target.settings, {"X-Lab-Token": target.token}
    asked: dict[str, str] = {f"{settings.backend_url}{_NOWHERE}": settings.LAB_SERVER}
    asked[f"{settings.target_url}{_NOWHERE}"] = settings.LAB_SERVER
    if settings.LAB_SECOND_SERVER != "off":
        asked[f"{settings.target_url}/async{_NOWHERE}"] = settings.LAB_SECOND_SERVER
    for url, wanted in asked.items():
        try:
            said = target.client.get(url, headers=token).headers.get("X-Lab-Server")
        except httpx.HTTPError as error:
            raise LabError(f"{url} does not answer: {error}.") from None
        if said != wanted:
            raise LabError(
                f"{url} was answered by {said or 'an unknown server'}, but the settings require "
                f"{wanted}. See `lab status` and `lab logs backend`."
            )


def _check_same(name: str, said: dict[str, str], settings: Settings) -> None:
    wanted = settings.as_env()
    wrong = {k: v for k, v in said.items() if wanted[k] != v}
    if wrong:
        raise LabError(f"{name} runs with other settings: {wrong}. Try `lab set` again.")


def _check_backend_layers(target: Target, path: str) -> None:
    """Ask the backend itself until each layer that is on has answered, and no other has."""
    on = set(caches_on(target.settings)) - {"nginx"}
    before = read_counters(target.settings)
    for _ in range(_TRIES):
        target.get(target.settings.backend_url, path)
        counted = read_counters(target.settings).since(before)
        if on <= _hit(counted) or not on:
            break
    if _hit(counted) != on:
        raise LabError(
            f"The backend answered from these caches: {_named(_hit(counted))}; the settings "
            f"require: {_named(on)}. Counted: {counted.by_layer()}. See `lab logs backend`."
        )
    if not on and counted.built < 1:
        raise LabError("Every cache is off, but the backend built no page. See `lab logs backend`.")


def _hit(counted: Counters) -> set[str]:
    return {layer for layer, outcomes in counted.by_layer().items() if outcomes.get("hit")}


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


def _named(layers: set[str]) -> str:
    return ", ".join(sorted(layers)) or "none"
