"""The cache in front of a target: the lab's Nginx, for the operations that [cache] names."""

import os
import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from urllib.parse import urlsplit

from lab_settings.types import cpu_numbers

from load_lab.errors import UsageError
from load_lab.machine.cpus import choose_cpus
from load_lab.paths import current_state, lab_file
from load_lab.settings import LOOPBACK, Settings
from load_lab.stack import http
from load_lab.stack.native.die_with_parent import argv_prefix
from load_lab.stack.native.program_paths import library_env, require
from load_lab.stack.native.render import render
from load_lab.stack.native.started_processes import Process
from load_lab.targets.file import Cache, TargetFile
from load_lab.targets.mix import Mix

_TEMPLATES = lab_file("nginx/target")
_PARAMETER = re.compile(r"\{[^}]*\}")


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


def plan_front(file: TargetFile, cache: Cache, settings: Settings, folder: Path) -> FrontPlan:
    """Write Nginx's configuration into the folder; return how it is started."""
    folder.chmod(0o755)
    port = _free_port()
    values = _values(file, cache, settings, folder) | {"LAB_FRONT_PORT": str(port)}
    for name, template in (("nginx", "nginx"), ("operations", cache.mode)):
        source = _TEMPLATES / f"{template}.conf.template"
        text = render(source.read_text(), values) if source.exists() else ""
        (folder / f"{name}.conf").write_text(text)
    argv = [
        *argv_prefix(),
        *(str(require("nginx")), "-e", "stderr", "-c", str(folder / "nginx.conf")),
        *("-g", "daemon off;" + (" user root;" if os.getuid() == 0 else "")),
    ]
    # By this folder a later `lab down` finds an Nginx that a killed `lab` left.
    cwd = current_state().run
    cpus = choose_cpus(settings).target
    process = Process("cache", argv, cpus, cwd, os.environ | library_env())
    return FrontPlan(f"http://{LOOPBACK}:{port}{urlsplit(file.url).path}", process)


def _values(file: TargetFile, cache: Cache, settings: Settings, folder: Path) -> dict[str, str]:
    host, port = http.address(file.url)
    parts = urlsplit(file.url)
    return {
        "LAB_NGINX_WORKERS": str(len(cpu_numbers(choose_cpus(settings).target))),
        "LAB_NGINX_RUN_DIR": str(folder),
        "LAB_NGINX_ERROR_LOG": "stderr",
        "LAB_CLIENT_TIMEOUT": str(settings.LAB_CLIENT_TIMEOUT),
        "LAB_TARGET_SERVER": f"[{host}]:{port}" if ":" in host else f"{host}:{port}",
        "LAB_TARGET_HOST": parts.netloc,
        "LAB_TARGET_NAME": host,
        "LAB_TARGET_SCHEME": parts.scheme,
        "LAB_IDENTITY": "".join(f"$http_{_variable(name)}" for name in sorted(_identity(file))),
        "LAB_PATHS": _pattern(cache.operations, parts.path),
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
