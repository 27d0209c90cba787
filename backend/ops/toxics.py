"""Has toxiproxy delay what the settings say, and nothing where they say 0.

python -m ops.toxics

Both engines run it before the server starts and whenever the settings change. Toxiproxy itself
starts empty: one that was killed and started again refuses, rather than answering without a delay.
"""

import json
import sys
from dataclasses import dataclass
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import ProxyHandler, Request, build_opener

from config import env
from lab_settings.declaration import Declaration
from lab_settings.kinds import Direction

_SECONDS = 10
_TOXIC = "delay"
# Toxiproxy is next door: a proxy that the machine uses for the world would not find it.
_OPENER = build_opener(ProxyHandler({}))


class ToxiproxyError(Exception):
    """Toxiproxy does not answer, or refuses."""


class NotAnsweringError(ToxiproxyError):
    """Nothing listens there."""


@dataclass(frozen=True)
class Proxy:
    """One way past toxiproxy; `stream` is the direction that is delayed, as toxiproxy names it."""

    name: str
    listen: str
    upstream: str
    stream: str


def proxies(direction: Direction) -> list[Proxy]:
    """The two ways, each delayed in the direction that the backend's packets have, or in the other.

    Upstream is from client to server: the backend is Postgres's client and Nginx's server.
    """
    to_server, to_client = "upstream", "downstream"
    if direction is Direction.INCOMING:
        to_server, to_client = to_client, to_server
    postgres = f"{env.text('PGHOST')}:{env.text('PGPORT')}"
    return [
        Proxy("postgres", env.text("BACKEND_DELAYED_POSTGRES"), postgres, to_server),
        Proxy("backend", env.text("BACKEND_DELAYED_SERVER"), env.text("BACKEND_SERVER"), to_client),
    ]


def apply(lab: Declaration) -> None:
    """Make toxiproxy as `lab` says. Connections that go on living are delayed as the new ones.

    Raises:
        ToxiproxyError: it does not answer, or refuses.
    """
    if not lab.is_delayed:
        _remove_all()
        return
    wanted = proxies(lab.LAB_LATENCY_DIRECTION)
    _ask("POST", "/populate", [_definition(proxy) for proxy in wanted])
    for proxy in wanted:
        _delay(proxy, lab.LAB_LATENCY_MS)


def _definition(proxy: Proxy) -> dict[str, Any]:
    found = {"name": proxy.name, "listen": proxy.listen, "upstream": proxy.upstream}
    return {**found, "enabled": True}


def _delay(proxy: Proxy, milliseconds: int) -> None:
    path = f"/proxies/{proxy.name}/toxics"
    for toxic in _ask("GET", path):
        _ask("DELETE", f"{path}/{toxic['name']}")
    attributes = {"latency": milliseconds, "jitter": 0}
    toxic = {"name": _TOXIC, "type": "latency", "stream": proxy.stream, "attributes": attributes}
    _ask("POST", path, toxic)


def _remove_all() -> None:
    try:
        for name in _ask("GET", "/proxies"):
            _ask("DELETE", f"/proxies/{name}")
    except NotAnsweringError:
        # What is not there delays nothing.
        return


def _ask(method: str, path: str, body: object = None) -> Any:
    url = env.text("BACKEND_TOXIPROXY_URL") + path
    data = None if body is None else json.dumps(body).encode()
    request = Request(url, data, {"Content-Type": "application/json"}, method=method)  # noqa: S310
    try:
        with _OPENER.open(request, timeout=_SECONDS) as answer:
            said = answer.read()
    except HTTPError as error:
        reason = error.read().decode(errors="replace").strip()
        raise ToxiproxyError(f"Toxiproxy refuses {method} {path}: {reason}") from None
    except (URLError, OSError) as error:
        reason = str(getattr(error, "reason", error))
        raise NotAnsweringError(
            f"Toxiproxy does not answer at {url} ({reason}). See its log (lab logs toxiproxy); "
            "LAB_LATENCY_MS=0 does without it."
        ) from None
    return json.loads(said) if said.strip() else None


def main() -> None:
    lab = env.lab_settings()
    try:
        apply(lab)
    except ToxiproxyError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
