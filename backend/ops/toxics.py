"""Configure toxiproxy's delays from the settings; 0 removes them.

python -m ops.toxics

Both engines run it before the server starts and whenever the settings change. Toxiproxy itself
starts empty: after a restart it refuses connections, rather than forwarding without a delay.
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

_TIMEOUT_SECONDS = 10
_TOXIC = "delay"
# Toxiproxy is local: an HTTP proxy of the machine would not reach it.
_OPENER = build_opener(ProxyHandler({}))


class ToxiproxyError(Exception):
    """Toxiproxy is unreachable or rejects a request."""


class UnreachableError(ToxiproxyError):
    """Toxiproxy is unreachable."""


@dataclass(frozen=True)
class Proxy:
    """A proxy of toxiproxy; `stream` is the delayed direction, as toxiproxy names it."""

    name: str
    listen: str
    upstream: str
    stream: str


def proxies(direction: Direction) -> list[Proxy]:
    """Return the two proxies. Each delays the backend's outgoing packets, or its incoming ones.

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
    """Configure toxiproxy for `lab`. Open connections get the same delay as new ones.

    Raises:
        ToxiproxyError: it is unreachable or rejects a request.
    """
    if not lab.is_delayed:
        _remove_all()
        return
    delayed = proxies(lab.LAB_LATENCY_DIRECTION)
    _request("POST", "/populate", [_definition(proxy) for proxy in delayed])
    for proxy in delayed:
        _delay(proxy, lab.LAB_LATENCY_MS)


def _definition(proxy: Proxy) -> dict[str, Any]:
    addresses = {"name": proxy.name, "listen": proxy.listen, "upstream": proxy.upstream}
    return {**addresses, "enabled": True}


def _delay(proxy: Proxy, milliseconds: int) -> None:
    path = f"/proxies/{proxy.name}/toxics"
    for toxic in _request("GET", path):
        _request("DELETE", f"{path}/{toxic['name']}")
    attributes = {"latency": milliseconds, "jitter": 0}
    toxic = {"name": _TOXIC, "type": "latency", "stream": proxy.stream, "attributes": attributes}
    _request("POST", path, toxic)


def _remove_all() -> None:
    try:
        for name in _request("GET", "/proxies"):
            _request("DELETE", f"/proxies/{name}")
    except UnreachableError:
        # A toxiproxy that does not run delays nothing.
        return


def _request(method: str, path: str, body: object = None) -> Any:
    url = env.text("BACKEND_TOXIPROXY_URL") + path
    data = None if body is None else json.dumps(body).encode()
    request = Request(url, data, {"Content-Type": "application/json"}, method=method)  # noqa: S310
    try:
        with _OPENER.open(request, timeout=_TIMEOUT_SECONDS) as response:
            content = response.read()
    except HTTPError as error:
        reason = error.read().decode(errors="replace").strip()
        raise ToxiproxyError(f"Toxiproxy rejected {method} {path}: {reason}") from None
    except (URLError, OSError) as error:
        reason = str(getattr(error, "reason", error))
        raise UnreachableError(
            f"Toxiproxy is unreachable at {url} ({reason}). See its log: lab logs toxiproxy. To "
            "run without it: LAB_LATENCY_MS=0."
        ) from None
    return json.loads(content) if content.strip() else None


def main() -> None:
    lab = env.lab_settings()
    try:
        apply(lab)
    except ToxiproxyError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
