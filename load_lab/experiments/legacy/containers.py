"""Arms of old stacks as containers, in the network of the compose stack."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any

import psutil

from load_lab.console import step
from load_lab.errors import LabError
from load_lab.experiments.legacy.environment import MissingRequirement, is_unreachable
from load_lab.experiments.legacy.runner import (
    DATABASE,
    RunningArm,
    address_facts,
    arm_cpus,
    free_ports,
)
from load_lab.experiments.legacy.stacks import FOLDER, Arm, Stack
from load_lab.settings import LOOPBACK, Settings
from load_lab.stack.docker import LEGACY_LABEL, compose_argv, remove_legacy
from load_lab.stack.native.render import OPEN_FILES
from load_lab.stack.reference import PASSWORD, ROLE
from load_lab.targets.target import PlainServer

# Ports and path inside the containers.
_PORT, _REDIS_PORT, _SECRETS = 8000, 6379, "/run/lab-secrets"
# Two channel layers of asgi_ipc take 120 MB; Docker's default is 64.
_SHARED_MEMORY = "256m"


@dataclass(frozen=True)
class DockerRunner:
    """See `load_lab.experiments.legacy.runner.LegacyRunner`."""

    settings: Settings

    def make(self, stack: Stack) -> None:
        image = _image(stack)
        if _docker("image", "inspect", image).returncode == 0:
            return
        argv = ("build", "--tag", image, "--file", str(stack.folder / "Dockerfile"), str(FOLDER))
        with step(f"Building the image of {stack.title}, once (minutes, with its base image)"):
            process = _docker(*argv)
        if process.returncode:
            message = f"The image of {stack.name} could not be built"
            if is_unreachable(process.stdout + process.stderr):
                reason = "it needs its base image and the package index, this once"
                raise MissingRequirement(f"{message}; {reason}:\n{_last_lines(process)}")
            raise LabError(f"{message}:\n{_last_lines(process)}")

    def prepare(self, stack: Stack) -> None:
        argv = [*self._shared_flags(stack), _image(stack), *stack.prepare]
        process = _docker("run", "--rm", *argv)
        if process.returncode:
            raise LabError(
                f"`{' '.join(stack.prepare)}` of {stack.name} failed:\n{_last_lines(process)}"
            )

    @contextmanager
    def running(self, stack: Stack, arm: Arm) -> Iterator[RunningArm]:
        (port,) = free_ports(self.settings, 1)
        cpus = arm_cpus(arm, self.settings)
        containers = _Containers(self._compose["name"])
        remove_legacy(containers.project)
        try:
            if arm.layer == "redis":
                containers.run("legacy-redis", *self._redis(cpus.layer))
            shared = [*self._shared_flags(stack, arm), "--cpuset-cpus", cpus.server]
            for name, argv in arm.commands("0.0.0.0", _PORT):  # noqa: S104
                web = self._web_flags(arm, name, port, containers.project)
                containers.run(name, *web, *shared, _image(stack), *argv)
            facts = address_facts(arm, cpus, port, _REDIS_PORT)
            url = f"http://{LOOPBACK}:{port}"
            server = PlainServer(stack.name, url, arm.title, containers.pids(), containers.check)
            yield RunningArm(server, facts)
        finally:
            remove_legacy(containers.project)

    @cached_property
    def _compose(self) -> dict[str, Any]:
        argv = [*compose_argv(), "config", "--format", "json"]
        process = subprocess.run(argv, capture_output=True, text=True, check=False)
        if process.returncode:
            raise LabError(f"docker compose config failed: {process.stderr.strip()[-500:]}")
        return dict(json.loads(process.stdout))

    def _network(self) -> list[str]:
        return ["--network", self._compose["networks"]["default"]["name"]]

    def _shared_flags(self, stack: Stack, arm: Arm | None = None) -> list[str]:
        """Return the network, environment and secrets of every container of the stack."""
        redis = f"redis://{self._compose['name']}-legacy-redis:{_REDIS_PORT}/0"
        env = {"LEGACY_REDIS_URL": redis}
        if arm and arm.layer:
            env["LEGACY_LAYER"] = arm.layer
        if stack.database:
            env |= {"PGHOST": "postgres", "PGPORT": "5432", "PGUSER": ROLE}
            env |= {"PGDATABASE": DATABASE}
            env |= {"LEGACY_PASSWORD_FILE": f"{_SECRETS}/{PASSWORD}"}
        secrets = f"{self._compose['volumes']['secrets-legacy']['name']}:{_SECRETS}:ro"
        flags = [part for name, value in env.items() for part in ("--env", f"{name}={value}")]
        return [*self._network(), *flags, "--volume", secrets]

    def _web_flags(self, arm: Arm, name: str, port: int, project: str) -> list[str]:
        """Return the server's port and shared memory, which its workers share."""
        if name == "legacy-web":
            return [
                *("--publish", f"{LOOPBACK}:{port}:{_PORT}"),
                *("--ipc", "shareable", "--shm-size", _SHARED_MEMORY),
            ]
        return ["--ipc", f"container:{project}-legacy-web"] if arm.layer == "ipc" else []

    def _redis(self, cpus: str) -> list[str]:
        """Return a Redis for the channel layer: it keeps all messages, while the cache evicts."""
        flags = ["--save", "", "--appendonly", "no", "--protected-mode", "no"]
        image = self._compose["services"]["redis"]["image"]
        # As in docker-compose.yml: the image's entrypoint would load modules.
        command = ["--user", "999:999", "--entrypoint", "redis-server", image, *flags]
        return [*self._network(), "--cpuset-cpus", cpus, *command]


@dataclass
class _Containers:
    """The containers of one arm; they are removed by their label."""

    project: str
    names: list[str] = field(default_factory=list)

    def run(self, name: str, *argv: str) -> None:
        flags = ["--name", f"{self.project}-{name}", "--label", f"{LEGACY_LABEL}={self.project}"]
        flags += ["--ulimit", f"nofile={OPEN_FILES}", "--security-opt", "no-new-privileges:true"]
        process = _docker("run", "--detach", *flags, *argv)
        if process.returncode:
            raise LabError(f"The container {name} did not start:\n{_last_lines(process)}")
        self.names.append(name)

    def pids(self) -> dict[str, int]:
        """Return the process ids; the host sees them only on Linux."""
        pids = {name: int(self._inspect(name, "{{.State.Pid}}")) for name in self.names}
        return {name: pid for name, pid in pids.items() if pid and psutil.pid_exists(pid)}

    def check(self) -> None:
        """Check that every container is running.

        Raises:
            LabError: one has ended; with the end of its log.
        """
        for name in self.names:
            if self._inspect(name, "{{.State.Running}}") != "true":
                log = _last_lines(_docker("logs", "--tail", "8", f"{self.project}-{name}"))
                raise LabError(f"The container {name} ended. Its log ends:\n{log}")

    def _inspect(self, name: str, template: str) -> str:
        return _docker("inspect", "--format", template, f"{self.project}-{name}").stdout.strip()


def _image(stack: Stack) -> str:
    """Return the image's name, which changes with each of its source files."""
    project = sorted(path for path in stack.project_folder.rglob("*.py"))
    sources = [stack.requirements, stack.folder / "Dockerfile", FOLDER / "bootstrap.txt", *project]
    sources.append(FOLDER / "projects/lab_verify.py")
    digest = sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]
    return f"load-lab-legacy-{stack.name}:{digest}"


def _docker(*argv: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(["docker", *argv], capture_output=True, text=True, check=False)


def _last_lines(process: "subprocess.CompletedProcess[str]") -> str:
    return "\n".join((process.stdout + process.stderr).strip().splitlines()[-12:])
