"""The cache in front of a target: the lab's Nginx, for the operations that [cache] names."""

import os
import re
import socket
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from urllib.parse import urlsplit

import httpx
from lab_settings.messages import shorten
from lab_settings.types import cpu_numbers

from load_lab.console import step
from load_lab.errors import UsageError
from load_lab.machine.cpus import choose_cpus
from load_lab.settings import LOOPBACK, Settings
from load_lab.stack import http
from load_lab.stack.native.die_with_parent import argv_prefix
from load_lab.stack.native.program_paths import library_env, require
from load_lab.stack.native.render import write_templates
from load_lab.stack.native.started_processes import Process
from load_lab.targets.file import Cache, TargetFile
from load_lab.targets.mix import Mix, Operation

_PARAMETER = re.compile(r"\{[^}]*\}")
# The headers of a request that the cache sends.
_SENT = {"accept", "accept-language", "origin"}
# They are part of the cache's key, or not sent to the target.
_KNOWN_VARY = _SENT | {"accept-encoding", "cookie", "authorization"}
# What a Cache-Control says about storing; the first that matches counts.
_STORING = (
    (re.compile("private|no-store|no-cache", re.IGNORECASE), False),
    (re.compile("s-maxage=0*[1-9]", re.IGNORECASE), True),
    (re.compile(r"max-?age=0+(\D|$)", re.IGNORECASE), False),
)


@dataclass(frozen=True)
class FrontPlan:
    """An Nginx that is not started yet: where it will listen, and its process."""

    url: str
    process: Process


def check_cache(file: TargetFile, cache: Cache, mix: Mix, path: Path) -> None:
    """Check that the cache can hand no user's answer to another, and that its operations exist.

    Raises:
        UsageError: it could, or one does not.
    """
    if cache.mode == "basic" and (file.headers or file.auth):
        raise UsageError(
            f'mode = "basic" of [cache] in {path} ignores who asks, and the target knows its '
            "users by [headers] or [auth]: one would get the answer of another. Use "
            '"protected".'
        )
    known = [each.name for each in mix.operations if each.method == "GET"]
    for name in cache.operations:
        if name not in known:
            near = get_close_matches(name, known, n=1) or known[:1]
            raise UsageError(
                f"[cache] in {path} names {name}, which is no GET operation of the mix. "
                + (f"Is it {near[0]}?" if near else "The mix has none.")
            )


def left_out_of_cache(file: TargetFile, cache: Cache, mix: Mix) -> dict[str, str]:
    """Return the operations of the cache whose answers must not be stored, and why. Each is sent
    once, as the cache would send it. In front of them the cache would only cost time.
    """
    if cache.mode != "protected" or _identity(file):
        return {}
    named = [each for each in mix.operations if each.name in cache.operations]
    with step("Checking which answers may be cached"):
        reasons = {each.name: _reason_of(file, each) for each in named}
    return {name: reason for name, reason in reasons.items() if reason}


def _reason_of(file: TargetFile, operation: Operation) -> str:
    headers = {name: each for name, each in operation.headers.items() if name in _SENT}
    url = file.url + operation.requests[0].path
    try:
        response = http.get(url, timeout=file.ready_seconds, headers=headers)
    except httpx.HTTPError:
        # The load's own check reports it.
        return ""
    return why_not_stored(response.status_code, response.headers)


def why_not_stored(status: int, headers: httpx.Headers) -> str:
    """Return why an answer must not be stored; empty for one that may be, and for a failure, which
    tells nothing. The same rules as in nginx/target/nginx.conf.template, which applies them to each
    answer of a load.
    """
    if status >= httpx.codes.INTERNAL_SERVER_ERROR:
        return ""
    if status != httpx.codes.OK:
        return f"answers {status}"
    if "set-cookie" in headers:
        return "sets a cookie"
    control = headers.get("cache-control", "")
    if not next((allowed for rule, allowed in _STORING if rule.search(control)), True):
        return f"has Cache-Control: {shorten(control)}"
    vary = {name.strip().lower() for name in headers.get("vary", "").split(",")}
    if unknown := vary - _KNOWN_VARY - {""}:
        return f"has Vary: {shorten(', '.join(sorted(unknown)))}"
    return ""


def plan_front(
    file: TargetFile, cache: Cache, settings: Settings, folder: Path, left_out: Collection[str]
) -> FrontPlan:
    """Write Nginx's configuration into the folder; return how it is started. It does not store the
    operations of `left_out`.
    """
    folder.chmod(0o755)
    port = _free_port()
    values = _values(file, cache, settings, folder) | {
        "LAB_FRONT_PORT": str(port),
        "LAB_PATHS": _pattern(set(cache.operations) - set(left_out), urlsplit(file.url).path),
        "LAB_LEFT_OUT": _pattern(left_out, urlsplit(file.url).path),
    }
    write_templates(values, folder, "nginx/target")
    write_templates(values, folder / "page-cache", "nginx/templates/page-cache")
    argv = [
        *argv_prefix(),
        *(str(require("nginx")), "-e", "stderr", "-c", str(folder / "nginx.conf")),
        *("-g", "daemon off;" + (" user root;" if os.getuid() == 0 else "")),
    ]
    # Not the stack's folder, by which `lab down` would find it: it ends with this command.
    cpus = choose_cpus(settings).target
    process = Process("cache", argv, cpus, folder, os.environ | library_env())
    return FrontPlan(f"http://{LOOPBACK}:{port}{urlsplit(file.url).path}", process)


def _values(file: TargetFile, cache: Cache, settings: Settings, folder: Path) -> dict[str, str]:
    host, port = http.address(file.url)
    parts = urlsplit(file.url)
    return {
        "LAB_NGINX_WORKERS": str(len(cpu_numbers(choose_cpus(settings).target))),
        "LAB_NGINX_RUN_DIR": str(folder),
        "LAB_NGINX_ERROR_LOG": "stderr",
        "LAB_CLIENT_TIMEOUT": str(settings.LAB_CLIENT_TIMEOUT),
        "LAB_PROXY_TIMEOUT": str(settings.LAB_CLIENT_TIMEOUT),
        "LAB_TARGET_SERVER": f"[{host}]:{port}" if ":" in host else f"{host}:{port}",
        "LAB_TARGET_HOST": parts.netloc,
        "LAB_TARGET_NAME": host,
        "LAB_TARGET_SCHEME": parts.scheme,
        "LAB_IDENTITY": "".join(f"$http_{_variable(name)}" for name in sorted(_identity(file))),
        "LAB_CACHE_MODE": cache.mode,
        "LAB_CACHE_SECONDS": str(cache.seconds),
    }


def _identity(file: TargetFile) -> set[str]:
    """Return the headers by which the target knows its users."""
    return {*file.headers, *([file.auth.header] if file.auth else [])}


def _variable(header: str) -> str:
    return re.sub(r"[^a-z0-9]", "_", header.lower())


def _pattern(operations: Iterable[str], prefix: str) -> str:
    """Return a pattern of the operations' paths; a parameter is one segment."""
    templates = (prefix + name.partition(" ")[2] for name in operations)
    paths = ("[^/]+".join(map(_escaped, _PARAMETER.split(each))) for each in templates)
    return f"^({'|'.join(paths)})$"


def _escaped(text: str) -> str:
    return re.escape(text).replace('"', r"\"")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])
