"""The lab's Nginx in front of a server of the test, as [cache] of a target's file has it."""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.cookiejar import DefaultCookiePolicy
from pathlib import Path

import httpx

from load_lab.settings import load_settings
from load_lab.targets.app_process import running
from load_lab.targets.declared import find_target


@contextmanager
def target_front(
    url: str,
    folder: Path,
    mode: str,
    cached: Sequence[str],
    *lines: str,
    mix: Sequence[str] = (),
    seconds: int = 60,
) -> Iterator[httpx.Client]:
    """Start it for a target with the operations `mix`, of which [cache] names `cached`; yield a
    client that keeps no cookies. `lines` are more of the file. Each operation has one request: its
    path, with 7 for each parameter.
    """
    path = folder / "shop.toml"
    cache = f'[cache]\nmode = "{mode}"\nseconds = {seconds}\noperations = {json.dumps(cached)}\n'
    path.write_text("\n".join([f'url = "{url}"', 'ready = "/items/"', *lines, cache]))
    operations = [
        {
            "name": name,
            "method": "GET",
            "weight": 1,
            "expect": 200,
            "requests": [{"path": re.sub(r"\{\w+\}", "7", name.removeprefix("GET "))}],
        }
        for name in mix or cached
    ]
    document = {"mix_version": 1, "source": "a test", "operations": operations}
    (folder / "shop.mix.json").write_text(json.dumps(document))
    with (
        running(find_target(str(path)), load_settings()) as target,
        httpx.Client(base_url=target.k6_env()["BASE_URL"], timeout=30) as client,
    ):
        client.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        yield client
