"""Programs that are built with Go, from pinned versions, unless the cache has them."""

import hashlib
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from load_lab.console import note, step
from load_lab.errors import LabError
from load_lab.paths import BIN, lab_file
from load_lab.stack.native import build_cache
from load_lab.stack.native.go import GO_ENV, require_go

K6_VERSION = "2.2.0"
TOXIPROXY_VERSION = "2.12.0"
VEGETA_VERSION = "12.12.0"


@dataclass(frozen=True)
class Build:
    """The programs of one Go command.

    `files` has their names below .lab/bin, by the names that Go gives them. The folder `module` has
    the go.mod and go.sum that pin them; without it, each package has its version.
    """

    what: str
    duration: str
    packages: tuple[str, ...]
    files: Mapping[str, str]
    module: Path | None = None
    flags: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Return the name in the cache, which changes with each pinned version."""
        pins = [repr((self.packages, self.flags, GO_ENV)).encode()]
        if self.module:
            pins += [(self.module / name).read_bytes() for name in ("go.mod", "go.sum")]
        digest = hashlib.sha256(b"\0".join(pins)).hexdigest()[:16]
        return f"{self.what}-{sys.platform}-{platform.machine()}-{digest}".replace(" ", "-")

    def argv(self, folder: Path) -> list[str]:
        """Return the arguments of `go` that build into a folder (GOBIN)."""
        if self.module is None:
            return ["install", *self.flags, *self.packages]
        return ["build", "-C", str(self.module), "-o", f"{folder}/", *self.flags, *self.packages]


_TOXIPROXY = "github.com/Shopify/toxiproxy/v2"

# `go install` rejects k6's module, whose newest versions can't be read.
K6 = Build(
    f"k6 {K6_VERSION}",
    "90 s on 2 cores",
    ("go.k6.io/k6/v2",),
    {"k6": "k6"},
    module=lab_file("native/k6"),
)
TOXIPROXY = Build(
    f"toxiproxy {TOXIPROXY_VERSION}",
    "25 s",
    tuple(f"{_TOXIPROXY}/cmd/{name}@v{TOXIPROXY_VERSION}" for name in ("server", "cli")),
    {"server": "toxiproxy-server", "cli": "toxiproxy-cli"},
    flags=(f"-ldflags=-X={_TOXIPROXY}.Version={TOXIPROXY_VERSION}",),
)
VEGETA = Build(
    f"vegeta {VEGETA_VERSION}",
    "20 s",
    (f"github.com/tsenart/vegeta/v12@v{VEGETA_VERSION}",),
    {"vegeta": "vegeta"},
)
COMPOSE = Build(
    "docker compose",
    "2 minutes on 2 cores",
    ("github.com/docker/compose/v2/cmd",),
    {"cmd": "docker-compose"},
    module=lab_file("tests/compose/cli"),
)
KUBERNETES = Build(
    "kube-apiserver and kubectl",
    "10 minutes on 2 cores",
    ("k8s.io/kubernetes/cmd/kube-apiserver", "k8s.io/kubernetes/cmd/kubectl"),
    {"kube-apiserver": "kube-apiserver", "kubectl": "kubectl"},
    module=lab_file("tests/kubernetes/programs"),
)


def provide(build: Build) -> None:
    """Put programs below .lab/bin: from the cache, or built.

    Raises:
        LabError: they can't be built.
    """
    BIN.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=BIN) as scratch:
        folder = Path(scratch)
        if build_cache.restore(build.key, build.files.values(), folder):
            note(f"Took {build.what} from {build_cache.cache_folder()}.")
        else:
            _compile(build, folder)
            build_cache.store(build.key, [folder / name for name in build.files.values()])
        for name in build.files.values():
            (folder / name).replace(BIN / name)


def _compile(build: Build, folder: Path) -> None:
    go, env = require_go()
    with step(f"Building {build.what} (about {build.duration}, the first time)"):
        run([str(go), *build.argv(folder)], env | {"GOBIN": str(folder)})
    for built, name in build.files.items():
        (folder / built).rename(folder / name)


def run(argv: list[str], env: Mapping[str, str] | None = None) -> None:
    """Run a command to its end.

    Raises:
        LabError: it failed; the message has the end of its output.
    """
    result = subprocess.run(
        argv, env={**os.environ, **(env or {})}, capture_output=True, text=True, check=False
    )
    if result.returncode:
        output = "\n".join((result.stdout + result.stderr).strip().splitlines()[-15:])
        raise LabError(f"`{' '.join(argv)}` failed with exit code {result.returncode}:\n{output}")
