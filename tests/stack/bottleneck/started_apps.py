"""Small apps that wait for something, started as a user's own app is, with what they need."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

import tomli_w

from load_lab.settings import LOOPBACK
from load_lab.stack.engine import settings_of
from load_lab.stack.native.program_paths import library_env, require
from load_lab.stack.native.supervision import port_is_open, wait_for
from load_lab.targets.app_process import running
from load_lab.targets.declared import DeclaredTarget, Front, find_target
from tests.stack.bottleneck.injections import cpu_group, on_target_cpus
from tests.support.ports import free_port

_APPS = Path(__file__).parent / "apps"
THREADS = ("gunicorn", "--workers", "1", "--threads", "16", "waiting:app")
# A lock that all of them have is made before they are forked.
PROCESSES = ("gunicorn", "--workers", "4", "--preload", "waiting:app")
LOOP = ("uvicorn", "--no-access-log", "looping:app")

# One worker, which asks itself for the compressed answer: k6 takes others, too.
_NGINX = """
worker_processes 1; daemon off; pid {folder}/nginx.pid; error_log {folder}/nginx.log; {user}
events {{ worker_connections 1024; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/temp;
    fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    proxy_cache_path {folder}/pages keys_zone=pages:1m;
    proxy_http_version 1.1; proxy_max_temp_file_size 0;
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://127.0.0.1:{inner}; proxy_set_header Accept-Encoding gzip;
        }}
    }}
    server {{
        listen 127.0.0.1:{inner};
        location / {{ {directives} proxy_pass {app}; }}
    }}
}}
"""


@dataclass(frozen=True)
class App:
    """An app of apps/: what its requests wait for, and the command that starts it.

    `options` are those of the command, and `prove` names those that would help against a cause;
    `service` are the arguments of apps/service.py, with names in braces, and `cpus` its CPU quota;
    `nginx` the directives of one in front of the app; `around` runs in the app's folder.
    """

    wait: str
    command: tuple[str, ...] = THREADS
    prefix: tuple[str, ...] = ()
    options: Mapping[str, int] = field(default_factory=dict)
    prove: Mapping[str, str] = field(default_factory=dict)
    service: tuple[str, ...] = ()
    cpus: float | None = None
    nginx: str = ""
    around: Callable[[Path], AbstractContextManager[None]] = lambda _folder: nullcontext()

    @contextmanager
    def start(self, engine, folder) -> Iterator[DeclaredTarget]:
        """Yield it as a target, on the target's CPUs."""
        port, app_port = free_port(), free_port()
        words = {"folder": folder, "port": port, "app_port": app_port}
        with ExitStack() as started:
            started.enter_context(self.around(folder))
            if self.service:
                argv = [each.format(**words) for each in self.service]
                service = started.enter_context(_service(engine, *argv))
                if self.cpus:
                    started.enter_context(cpu_group(service.pid, self.cpus))
            path = write_target(self, folder, port, app_port)
            # A recorded run has its name.
            declared = replace(find_target(str(path)), name=self.wait)
            target = started.enter_context(running(declared, settings_of(engine)))
            if self.nginx:
                front = started.enter_context(_nginx(engine, folder, self.nginx, target.url))
                target = replace(target, front=front)
            yield target


def write_target(app: App, folder: Path, port: int, app_port: int) -> Path:
    """Write the file of a target that the lab starts, and its mix."""
    module, *options = app.command
    address = f"{LOOPBACK}:{app_port}"
    where = ["--bind", address] if module == "gunicorn" else ["--port", str(app_port)]
    prefix = [each.format(folder=folder) for each in app.prefix]
    command = [*prefix, sys.executable, "-m", module, *where, *options]
    document = {
        "url": f"http://{address}",
        "ready": "/healthz",
        "prove": {cause: {option: "x2"} for cause, option in app.prove.items()},
        "start": {
            "folder": str(_APPS),
            "command": command,
            "options": dict(app.options),
            "env": {"WAIT": app.wait, "FOLDER": str(folder), "PORT": str(port)},
        },
    }
    path = folder / "app.toml"
    path.write_text(tomli_w.dumps(document))
    operation = {"name": "GET /items/", "method": "GET", "weight": 1, "expect": 200}
    operation["requests"] = [{"path": "/items/"}]
    mix = {"mix_version": 1, "source": "a test", "operations": [operation]}
    (folder / "app.mix.json").write_text(json.dumps(mix))
    return path


@contextmanager
def _service(engine, *argv: str) -> Iterator[subprocess.Popen[str]]:
    program = (sys.executable, str(_APPS / "service.py"), *argv)
    with on_target_cpus(engine, *program, stdout=subprocess.PIPE, text=True) as service:
        assert service.stdout.readline() == "ready\n", f"{argv} did not start"
        yield service


@contextmanager
def _nginx(engine, folder: Path, directives: str, app: str) -> Iterator[Front]:
    port, file = free_port(), folder / "nginx.conf"
    values = {"folder": folder, "port": port, "inner": free_port(), "app": app}
    values |= {"directives": directives, "user": "user root;"}
    file.write_text(_NGINX.format(**values))
    argv = (str(require("nginx")), "-e", f"{folder}/nginx.log", "-c", str(file))
    with on_target_cpus(engine, *argv, env=library_env()) as nginx:
        wait_for(lambda: port_is_open(LOOPBACK, port), seconds=10, what="Nginx")
        yield Front(f"http://{LOOPBACK}:{port}", nginx.pid)
