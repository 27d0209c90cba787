"""The docker engine: the stack of docker-compose.yml, run with docker compose."""

import hashlib
import json
import os
import re
import secrets
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from load_lab.console import note, step
from load_lab.errors import LabError, UsageError
from load_lab.machine.cpus import choose_cpus
from load_lab.machine.logs import CHUNK_BYTES, NewText
from load_lab.paths import State, current_state, lab_file, project
from load_lab.settings import Settings, running_settings, save
from load_lab.stack.engine import (
    NO_REST_API,
    VERSION_COMMANDS,
    K6Command,
    ServiceState,
    ServiceStatus,
    settings_of,
    version_in,
)
from load_lab.stack.port_owner import port_owner

if TYPE_CHECKING:
    import psycopg

# Of Docker Engine 25, the first with `start_interval` of health checks.
_START_INTERVAL_API = (1, 44)

# Label of the containers of an old stack; its value is the compose project that they run with.
LEGACY_LABEL = "load-lab.legacy"
# Where k6's container has the mix of a load.
_MIX_IN_CONTAINER = "/mix.json"
# Variables of k6 with a path below the project's folder.
_PATHS = ("SUMMARY_PATH", "PREPARED", "PREPARED_PATH", "K6_OUT")
# Label of k6's container; its value is the compose project that it loads.
LOAD_LABEL = "load-lab.load"

# What runs with LAB_REFERENCE_APP=off. Alloy reads this project's containers only, and waits for
# Postgres; the lab reads the processes of a target itself.
_MEASURING_SERVICES = ("prometheus", "grafana")

# These services exit when they are done.
_ONE_SHOT = {"secrets", "init", "latency"}

# In toxiproxy's image, the program has another name.
_VERSION_COMMANDS = VERSION_COMMANDS | {"toxiproxy": ["/toxiproxy", "-version"]}

# The password comes from the environment, so it is in no process list.
_FLUSH = 'REDISCLI_AUTH="$(cat /run/lab-secrets/redis_password)" exec redis-cli -e flushall'

# Services that cache pages or queue requests, outermost first.
_CACHING_SERVICES = ("nginx", "backend-metrics", "backend", "backend-beside")

_STATES: dict[str, ServiceState] = {
    "running": "running",
    "created": "starting",
    "restarting": "failed",
    "exited": "stopped",
    "dead": "failed",
}


def compose_argv(*files: str) -> list[str]:
    """Return the command `docker compose` for `files`.

    Default: docker-compose.yml with docker-compose.override.yml, or the files in COMPOSE_FILE.
    """
    flags = [part for name in files for part in ("-f", str(lab_file(name)))]
    return ["docker", "compose", "--project-directory", str(lab_file()), *_own_names(files), *flags]


def _own_names(files: Iterable[str]) -> list[str]:
    """Return the options by which a project outside the checkout has containers, volumes and
    variables of its own; the files name those of the checkout.
    """
    own = project()
    if own.is_checkout:
        return []
    digest = hashlib.sha256(str(own.folder).encode()).hexdigest()[:8]
    folder = re.sub(r"[^a-z0-9]+", "-", own.folder.name.lower()).strip("-")
    name = "-".join(part for part in ("load-lab", folder, digest) if part)
    variables = own.env_file if own.env_file.exists() else os.devnull
    is_load = "docker-compose.load.yml" in files
    return ["--project-name", f"{name}-load" if is_load else name, "--env-file", str(variables)]


def compose_files(api_version: str) -> list[str]:
    """Return the target's compose files for an engine with that API version."""
    api = tuple(map(int, re.findall(r"\d+", api_version)))
    own = [name for name in ("docker-compose.override.yml",) if lab_file(name).exists()]
    old = ["docker-compose.old-engine.yml"] if api and api < _START_INTERVAL_API else []
    return ["docker-compose.yml", *own, *old]


def api_version() -> str:
    """Return the API version of the running engine; "" if none is running."""
    argv = ["docker", "version", "--format", "{{.Server.APIVersion}}"]
    return subprocess.run(argv, capture_output=True, text=True, check=False).stdout.strip()


class DockerEngine:
    """See `load_lab.stack.engine.Engine`."""

    name = "docker"
    has_processes = False

    def __init__(self) -> None:
        # Separate from the native engine's state, so that each engine finds only its own stack.
        self._state = State(current_state().base / "docker")

    def up(self, settings: Settings) -> None:
        self._state.base.mkdir(parents=True, exist_ok=True)
        if count := remove_legacy(self._project()):
            note(f"Removed {count} containers of old stacks, which a killed `lab run` had left.")
        with step("docker compose up (builds and pulls the first time)"):
            self._compose(["up", "-d", "--wait", "--build", *self._started(settings)], settings)
        if settings.LAB_REFERENCE_APP == "off":
            self._remove_reference_app(settings)
        else:
            # What was set for a measurement that was killed.
            self.sql("postgres", "ALTER SYSTEM RESET ALL", "SELECT pg_reload_conf()")
        save(settings, self._state)

    def _remove_reference_app(self, settings: Settings) -> None:
        """Remove what a stack with the reference app has left running."""
        running = {service.name for service in self.services()}
        if others := sorted(running - set(self._started(settings))):
            self._compose(["rm", "--stop", "--force", *others], settings)

    def down(self) -> None:
        with step("docker compose down"):
            # These containers would keep the stack's network in use.
            remove_legacy(self._project())
            self.stop_load()
            self._compose(["down"], self.settings())
            _run(compose_argv("docker-compose.load.yml"), ["down"], self.settings())
        self._state.settings.unlink(missing_ok=True)

    def apply(self, settings: Settings) -> None:
        if self.settings() is None:
            raise LabError("The stack is not running. Start it: lab up")
        with step("Recreating what changed; it refuses for some seconds"):
            self._compose(["up", "-d", "--wait", *self._started(settings)], settings)
        save(settings, self._state)

    def stop_load(self) -> int:
        return _remove_containers(f"{LOAD_LABEL}={self._project()}")

    def exec(self, service: str, argv: list[str]) -> subprocess.CompletedProcess[str]:
        return self._run(["exec", "-T", service, *argv], self.settings())

    def services(self) -> list[ServiceStatus]:
        output = self._run(["ps", "--all", "--format", "json"], self.settings()).stdout
        containers = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
        return [
            _status(container) for container in containers if container["Service"] not in _ONE_SHOT
        ]

    def settings(self) -> Settings | None:
        return running_settings(self._state)

    def token(self) -> str:
        result = self.exec("backend", ["cat", "/run/lab-secrets/lab_token"])
        if result.returncode or not result.stdout.strip():
            reason = result.stderr.strip() or "it is empty"
            raise LabError(f"The backend's token can't be read: {reason}. See `lab logs backend`.")
        return result.stdout.strip()

    @contextmanager
    def empty_caches(self, settings: Settings | None = None) -> Iterator[None]:
        # Nginx caches on a tmpfs and the workers in memory: both caches end with their container.
        after = settings or self.settings()
        if after is None:
            raise LabError("The stack is not running. Start it: lab up")
        try:
            # Killed after a second: requests left by an overload are dropped anyway. A service that
            # shares the backend's network must stop with it, or it stays in a network that no
            # longer exists.
            self._compose(["stop", "-t", "1", *_CACHING_SERVICES], self.settings())
            # A changed LAB_DB_MAX_CONNECTIONS recreates the container of Postgres.
            self._compose(["up", "-d", "--wait", "postgres", "redis"], after)
            save(after, self._state)
            yield
            self._compose(["exec", "-T", "redis", "sh", "-c", _FLUSH], after)
        finally:
            self._compose(["up", "-d", "--wait"], after)

    def sql(self, database: str, *statements: str) -> list[str]:
        flags = [part for statement in statements for part in ("-c", statement)]
        argv = ["psql", "-AtqX", "-v", "ON_ERROR_STOP=1", "-U", "postgres", "-d", database, *flags]
        result = self.exec("postgres", argv)
        if result.returncode:
            reason = result.stderr.strip()
            raise LabError(f"Postgres rejected the command: {reason}. See `lab logs postgres`.")
        return result.stdout.splitlines()

    def connect_postgres(self) -> "psycopg.Connection[Any] | None":
        # psycopg takes a tenth of a second to import.
        from load_lab.stack.superuser import connect

        password = self.exec("postgres", ["cat", "/run/lab-secrets/postgres_password"])
        return None if password.returncode else connect(settings_of(self), password.stdout.strip())

    def new_log(self, service: str) -> NewText:
        # Nginx's access log comes with its errors.
        return partial(
            self._output, "logs", "--no-log-prefix", "--since", f"{time.time():.3f}", service
        )

    def _output(self, *argv: str) -> Iterator[bytes]:
        """Yield what a command of compose prints."""
        command, env = [*compose_argv(), *argv], _environment(self.settings())
        with subprocess.Popen(
            command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as process:
            try:
                while process.stdout and (chunk := process.stdout.read(CHUNK_BYTES)):
                    yield chunk
            finally:
                process.kill()

    def pids(self) -> dict[str, int]:
        return dict(self._main_pids())

    def versions(self) -> dict[str, str]:
        # Versions of the programs, not of their images: an image can have any tag.
        running = {service.name for service in self.services() if service.state == "running"}
        results = {
            name: self.exec(name, argv)
            for name, argv in _VERSION_COMMANDS.items()
            if name in running
        }
        load = compose_argv("docker-compose.load.yml")
        results["k6"] = _run(
            load, ["run", "--rm", "load", *VERSION_COMMANDS["k6"]], self.settings()
        )
        return {name: version_in(result.stdout + result.stderr) for name, result in results.items()}

    def limits(self) -> dict[str, str]:
        config = self._run(["config", "--format", "json"], self.settings()).stdout
        services = json.loads(config)["services"] if config.strip() else {}
        resources = {
            name: service.get("deploy", {}).get("resources") for name, service in services.items()
        }
        return {
            name: json.dumps(resource["limits"]) for name, resource in resources.items() if resource
        }

    def _main_pids(self) -> Iterator[tuple[str, int]]:
        ids = self._run(["ps", "--quiet"], self.settings()).stdout.split()
        label = '{{index .Config.Labels "com.docker.compose.service"}} {{.Id}} {{.State.Pid}}'
        argv = ["docker", "inspect", "--format", label, *ids]
        output = subprocess.run(argv, capture_output=True, text=True, check=False).stdout
        for line in output.splitlines():
            service, container, pid = line.split()
            if is_process_of(container, int(pid)):
                yield service, int(pid)

    def _known(self, settings: Settings | None) -> list[str]:
        """Return the services of the compose files; compose starts one that is named although its
        profile is off.
        """
        return self._run(["config", "--services"], settings).stdout.split()

    def _started(self, settings: Settings) -> list[str]:
        """Return what to start; empty for every service."""
        if settings.LAB_REFERENCE_APP == "on":
            return []
        return [name for name in self._known(settings) if name in _MEASURING_SERVICES]

    def logs(self, service: str, follow: bool) -> list[str]:
        known = self._known(self.settings())
        if service not in known:
            raise UsageError(f"There is no service '{service}'. Known: {', '.join(known)}.")
        return [*compose_argv(), "logs", "--tail", "200", *(["-f"] if follow else []), service]

    def push_url(self, settings: Settings) -> str:
        # Alloy has a write-ahead log on disk, so an outage of Prometheus leaves no gap.
        states = {service.name: service.state for service in self.services()}
        return settings.alloy_push_url if states.get("alloy") == "running" else settings.push_url

    def k6(self, settings: Settings, env: dict[str, str]) -> K6Command:
        # In the container, results/ is at the root, and with the host's network the target's URL is
        # the same.
        variables = {name: _in_container(name, value) for name, value in env.items()}
        if mix := env.get("MIX"):
            variables["MIX"] = _MIX_IN_CONTAINER
        # Passed by name: values on the command line, such as the lab's token, are readable by every
        # user of this machine.
        flags = [part for name in variables for part in ("-e", name)]
        # Run as the calling user, who owns results/.
        flags += ["--user", f"{os.getuid()}:{os.getgid()}"]
        flags += ["--label", f"{LOAD_LABEL}={self._project()}"]
        flags += ["--volume", f"{mix}:{_MIX_IN_CONTAINER}:ro"] if mix else []
        name = f"load-lab-k6-{secrets.token_hex(4)}"
        run = ["run", "--rm", "--name", name, *flags, "load", "k6"]
        argv = [*compose_argv("docker-compose.load.yml"), *run, *NO_REST_API]
        return K6Command(
            argv,
            lab_file(),
            {**os.environ, **_compose_env(settings), **variables},
            interrupt=("docker", "kill", "--signal", "INT", name),
            kill=("docker", "kill", name),
        )

    def _project(self) -> str:
        config = self._run(["config", "--format", "json"], self.settings()).stdout
        return str(json.loads(config)["name"]) if config.strip() else ""

    def _compose(self, argv: list[str], settings: Settings | None) -> None:
        result = self._run(argv, settings)
        if result.returncode:
            message = result.stderr.strip()[-2000:]
            raise LabError(f"docker compose {argv[0]} failed:\n{message}{_port_owner(message)}")

    def _run(self, argv: list[str], settings: Settings | None) -> subprocess.CompletedProcess[str]:
        return _run(compose_argv(), argv, settings)


def _run(
    compose: list[str], argv: list[str], settings: Settings | None
) -> subprocess.CompletedProcess[str]:
    # Messages may have whatever clients sent.
    return subprocess.run(
        [*compose, *argv],
        env=_environment(settings),
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )


def _environment(settings: Settings | None) -> dict[str, str]:
    env = {**os.environ, **(_compose_env(settings) if settings else {})}
    if "COMPOSE_FILE" not in env:
        files = compose_files(api_version())
        env["COMPOSE_FILE"] = os.pathsep.join(str(lab_file(name)) for name in files)
    return env


def _port_owner(message: str) -> str:
    """Return whose stack has the port that a message of Docker says is in use."""
    port = re.search(r":(\d+)\b.*already (?:allocated|in use)", message)
    owner = port_owner(int(port[1])) if port else None
    return f"\nOn port {port[1]} is the stack of {owner}." if port and owner else ""


def is_process_of(container_id: str, pid: int) -> bool:
    """Return whether a container's process is visible here: on macOS and Windows it runs in a
    virtual machine, where its number means another one.
    """
    with suppress(OSError):
        return container_id in Path(f"/proc/{pid}/cgroup").read_text()
    return False


def remove_legacy(project: str) -> int:
    """Remove leftover containers of old stacks (load_lab/experiments/legacy)."""
    return _remove_containers(f"{LEGACY_LABEL}={project}")


def _in_container(name: str, value: str) -> str:
    return value.replace(str(project().folder), "") if name in _PATHS else value


def _remove_containers(label: str) -> int:
    """Remove the containers with a label, and return their number."""
    flags = ["--all", "--quiet", "--filter", f"label={label}"]
    result = subprocess.run(["docker", "ps", *flags], capture_output=True, text=True, check=False)
    names = result.stdout.split()
    if names:
        argv = ["docker", "rm", "--force", "--volumes", *names]
        subprocess.run(argv, capture_output=True, check=False)
    return len(names)


def _compose_env(settings: Settings) -> dict[str, str]:
    """Return the settings with the CPUs that results will name; compose alone pins nothing."""
    cpus = choose_cpus(settings)
    return settings.as_env() | {
        "LAB_TARGET_CPUS": cpus.target,
        "LAB_LOAD_CPUS": cpus.load,
        "TOXIPROXY_BACKEND_PORT": str(settings.delayed_backend_port),
        "RESULTS_FOLDER": str(project().results),
    }


def _status(container: dict[str, str]) -> ServiceStatus:
    state = _STATES.get(container.get("State", ""), "failed")
    return ServiceStatus(
        container["Service"], state, container.get("Ports") or None, container.get("Status", "")
    )
