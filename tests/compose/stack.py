"""The compose stack of these tests: its files, its environment and the omitted services."""

import json
import os
from dataclasses import dataclass, field
from typing import Any

import yaml

from load_lab.paths import ROOT
from load_lab.stack.docker import compose_files
from tests.compose.commands import STATE, check_output, run
from tests.compose.standins import Image, provide, restore, store

PROJECT = "load-lab-test"
LOAD_FILE = "docker-compose.load.yml"


@dataclass
class Stack:
    """A compose stack. `environ` is the environment of every command for this stack."""

    environ: dict[str, str]
    images: list[Image] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)

    def compose(self, *argv: str, **environ: str) -> str:
        """Run docker compose on the target's files and return its output."""
        return check_output("docker", "compose", *argv, **{**self.environ, **environ})

    def load(self, *argv: str, **environ: str) -> Any:
        """Run docker compose on the generator's file; the caller checks the exit code."""
        flags = ("-f", str(ROOT / LOAD_FILE))
        return run("docker", "compose", *flags, *argv, **{**self.environ, **environ})

    def provide_images(self) -> None:
        """Provide every available image, and omit the services whose image is unavailable.

        Compose builds the backend's image; only its base image is provided here.
        """
        config = self._services("docker-compose.yml")
        base = config["backend"]["build"]["args"]["BASE_IMAGE"]
        image_names = {name: each["image"] for name, each in config.items() if "build" not in each}
        load = self._services(LOAD_FILE)["load"]["image"]
        restore()
        images = {name: provide(name) for name in sorted({base, load, *image_names.values()})}
        store()
        self.images = list(images.values())
        self.missing = {
            service: f"{image}: {images[image].origin}"
            for service, image in image_names.items()
            if images[image].missing
        }
        self._write_override()

    def _services(self, file: str) -> dict[str, Any]:
        argv = ("docker", "compose", "-f", str(ROOT / file), "config", "--format", "json")
        return dict(json.loads(check_output(*argv))["services"])

    def _write_override(self) -> None:
        """Put the omitted services into a profile that is never active, so they do not start."""
        override = STATE / "left-out.yml"
        services: dict[str, Any] = {name: {"profiles": ["left-out"]} for name in self.missing}
        if "alloy" in self.missing:
            receiver = "http://prometheus:9090/api/v1/write"
            services["push-gate"] = {"environment": {"LAB_PUSH_RECEIVER": receiver}}
        override.write_text(yaml.safe_dump({"services": services}))
        argv = ("docker", "version", "--format", "{{.Server.APIVersion}}")
        version = check_output(*argv)
        files = [*(str(ROOT / name) for name in compose_files(version)), str(override)]
        self.environ["COMPOSE_FILE"] = os.pathsep.join(files)
