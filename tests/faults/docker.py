"""Faults on the docker engine: containers are stopped, paused, signalled and killed."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

from load_lab.stack.docker import DockerEngine, compose_argv
from load_lab.stack.native.supervision import wait_for
from tests.faults.shared import BACKEND, SharedInjector

# Fills the tmpfs of Nginx's caches, and fills it again as soon as space is freed.
_FILL = """
until [ -e /tmp/enough ]; do cat /dev/zero >> /run/nginx/filling 2> /dev/null; sleep 0.005; done
rm /run/nginx/filling /tmp/enough
"""


class DockerInjector(SharedInjector):
    """See `tests.faults.injector.FaultInjector`."""

    engine: DockerEngine

    def __init__(self, engine: DockerEngine) -> None:
        self.engine = engine

    def remove(self) -> None:
        super().remove()
        self.engine._compose(["down", "--volumes", "--remove-orphans"], None)

    def family(self, service: str) -> list[psutil.Process]:
        """Docker restarts a container whose process is killed, but not after `docker kill`."""
        process = psutil.Process(self.engine.pids()[service])
        return [process, *process.children(recursive=True)]

    def password(self, name: str) -> str:
        # Each container has only the secrets of its program.
        owner = "postgres" if name == "postgres_password" else BACKEND
        return self.engine.exec(owner, ["cat", f"/run/lab-secrets/{name}"]).stdout.strip()

    @contextmanager
    def stop(self, service: str) -> Iterator[None]:
        self._compose("stop", service)
        try:
            yield
        finally:
            self._compose("start", service)

    @contextmanager
    def freeze(self, service: str) -> Iterator[None]:
        self._compose("pause", service)
        try:
            yield
        finally:
            self._compose("unpause", service)

    @contextmanager
    def reload_nginx(self) -> Iterator[None]:
        self._compose("kill", "--signal", "HUP", "nginx")
        yield

    @contextmanager
    def use_small_disk(self) -> Iterator[None]:
        # The container has a tmpfs of 1 GB for its caches.
        yield

    @contextmanager
    def fill_disk(self) -> Iterator[None]:
        argv = [*compose_argv(), "exec", "-T", "nginx", "sh", "-c", _FILL]
        with subprocess.Popen(argv, stdin=subprocess.DEVNULL) as process:
            try:
                wait_for(self._is_full, seconds=10, what="a full disk")
                yield
            finally:
                self.engine.exec("nginx", ["touch", "/tmp/enough"])
                process.wait(10)

    @contextmanager
    def deploy(self) -> Iterator[None]:
        """Send SIGHUP to make the server reload its code: `lab set` would replace the container."""
        before = self._workers()
        self._compose("kill", "--signal", "HUP", BACKEND)
        wait_for(lambda: self._has_new_workers(before), seconds=30, what="new workers")
        yield

    def _is_full(self) -> bool:
        process = self.engine.exec("nginx", ["sh", "-c", "df /run/nginx | tail -1"])
        return "100%" in process.stdout

    def _has_new_workers(self, before: set[int]) -> bool:
        now = self._workers()
        return bool(now) and now.isdisjoint(before)

    def _workers(self) -> set[int]:
        return {process.pid for process in self.family(BACKEND)[1:]}

    def _compose(self, *argv: str) -> None:
        self.engine._compose(list(argv), self.engine.settings())
