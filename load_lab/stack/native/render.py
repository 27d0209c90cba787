"""Render the native engine's configuration files from the project's."""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import yaml
from lab_settings.types import cpu_numbers

from load_lab.machine.cpus import Cpus, choose_cpus
from load_lab.paths import State, lab_file
from load_lab.settings import LOOPBACK, Settings
from load_lab.stack.native.services import metrics_ingress
from load_lab.stack.native.services.exporters import scrape_targets
from load_lab.stack.native.services.service import Service, pinned_command

_VARIABLE = re.compile(r"\$\{(LAB_\w+)\}")

# A stack under load has a few thousand open connections; supervisor raises its own limit to this.
OPEN_FILES = 8192


def render(text: str, values: Mapping[str, str]) -> str:
    """Return `text` with ${LAB_…} replaced, as envsubst does in the official Nginx image.

    Raises:
        KeyError: the text names a variable that `values` lacks.
    """
    return _VARIABLE.sub(lambda match: values[match[1]], text)


def write_nginx(settings: Settings, state: State) -> None:
    """Write nginx.conf and the files that it includes, with run and log files below the state
    directory.
    """
    values = {
        **settings.as_env(),
        "LAB_NGINX_WORKERS": str(len(cpu_numbers(choose_cpus(settings).target))),
        "LAB_NGINX_RUN_DIR": str(state.run),
        "LAB_NGINX_SNIPPETS": str(lab_file("nginx/snippets")),
        "LAB_NGINX_ACCESS_LOG": str(state.logs / "nginx-access.log"),
        "LAB_NGINX_ERROR_LOG": str(state.logs / "nginx-error.log"),
        "LAB_NGINX_LISTEN": f"{settings.LAB_BIND}:{settings.LAB_HTTP_PORT}",
        "LAB_NGINX_STATUS_LISTEN": f"{LOOPBACK}:{settings.LAB_NGINX_STATUS_PORT}",
        "LAB_BACKEND_UPSTREAM": settings.server_url.removeprefix("http://"),
        "LAB_BESIDE_UPSTREAM": f"{LOOPBACK}:{settings.LAB_SECOND_SERVER_PORT}",
    }
    write_templates(values, state.run)


def write_metrics_ingress(settings: Settings, state: State) -> None:
    """Write the configuration of the metrics ingress: the Nginx for pushes from other hosts."""
    folder = state.run / "push-gate"
    folder.mkdir(exist_ok=True)
    text = metrics_ingress.TEMPLATE.read_text()
    (folder / "nginx.conf").write_text(render(text, metrics_ingress.values(settings, state)))


def write_templates(
    values: Mapping[str, str], folder: Path, source: str = "nginx/templates"
) -> None:
    """Render every template of `source` below `folder`, as the official image's start script does.

    Raises:
        KeyError: a template names a variable that `values` lacks.
    """
    templates = lab_file(source)
    for template in sorted(templates.rglob("*.template")):
        target = folder / template.relative_to(templates).with_suffix("")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(render(template.read_text(), values))


def write_prometheus(services: list[Service], settings: Settings, state: State) -> None:
    """Write the project's prometheus.yml and rules, and this engine's list of targets."""
    folder = state.run / "prometheus"
    (folder / "targets").mkdir(parents=True, exist_ok=True)
    shutil.copy(lab_file("prometheus/prometheus.yml"), folder)
    # A rule that was removed must not stay in the copy.
    shutil.rmtree(folder / "rules", ignore_errors=True)
    shutil.copytree(lab_file("prometheus/rules"), folder / "rules")
    targets = scrape_targets(services, settings)
    (folder / "targets/native.yml").write_text(yaml.safe_dump(targets))


def write_supervisor(services: list[Service], cpus: Cpus, state: State) -> None:
    """Write supervisord.conf: one program per service; the lab starts them, in order."""
    head = (lab_file("native/supervisord.conf.template")).read_text()
    values = {
        "LAB_SOCKET": str(state.socket),
        "LAB_RUN": str(state.run),
        "LAB_LOGS": str(state.logs),
        "LAB_OPEN_FILES": str(OPEN_FILES),
        "LAB_STATE": str(state.base),
    }
    programs = [_program(service, cpus, state) for service in services]
    (state.run / "supervisord.conf").write_text("\n".join([render(head, values), *programs]))


def limits(settings: Settings) -> dict[str, str]:
    """Return the limits of the native engine: the processes of each side share all of its CPUs."""
    cpus = choose_cpus(settings)
    return {
        "target": f"CPU {cpus.target} for all services together",
        "load": f"CPU {cpus.load} for k6, Prometheus, exporters and the backend's metrics",
        "open files": str(OPEN_FILES),
    }


def _program(service: Service, cpus: Cpus, state: State) -> str:
    lines = {
        "command": " ".join(map(_quote, pinned_command(service, cpus))),
        "directory": service.cwd,
        "environment": ",".join(f"{k}={_quote(v)}" for k, v in service.env.items()),
        "user": service.user,
        "stopsignal": service.stop_signal,
        "stdout_logfile": state.logs / f"{service.name}.log",
    }
    body = "".join(f"{key}={_escape(value)}\n" for key, value in lines.items() if value)
    return f"[program:{service.name}]\n{body}{_COMMON}"


# A service that exits has failed or was killed: supervisor restarts it, like compose's restart
# policy.
_COMMON = """\
redirect_stderr=true
stdout_logfile_maxbytes=20MB
stdout_logfile_backups=1
autostart=false
autorestart=true
startsecs=1
startretries=3
stopwaitsecs=15
"""


def _quote(value: str) -> str:
    return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _escape(value: object) -> str:
    """Escape %: supervisor expands %(…)s in its configuration."""
    return str(value).replace("%", "%%")
