"""Install the programs of the native engine; `make setup` runs this module.

The machine's own programs are used as they are. Missing programs are unpacked from the
distribution's packages (native/apt-unpack.sh), or built (k6, toxiproxy), below `.lab`.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from lab.console import note, step
from lab.errors import LabError
from lab.paths import BIN, PROGRAMS, ROOT
from lab.settings.env_file import read_env_file
from lab.stack.native.program_paths import find, find_browser

K6_VERSION = "1.8.1"
TOXIPROXY_VERSION = "2.12.0"
VEGETA_VERSION = "12.12.0"
MIN_GO = (1, 25)

# With `auto`, go downloads a newer toolchain, which fails without that network.
_GO_ENV = {"GOTOOLCHAIN": "local", "GOFLAGS": "-trimpath"}


@dataclass(frozen=True)
class Program:
    """A program and the Debian package that contains it."""

    name: str
    package: str


# The packages of the browser in which the tests open the report.
_BROWSER = ("chromium", "chromium-common")

# Programs that the tests of compose need where the machine has no Docker engine.
_DOCKER = {
    "docker": "docker.io",
    "dockerd": "docker.io",
    "containerd": "containerd",
    "runc": "runc",
    "iptables-nft": "iptables",
    "debootstrap": "debootstrap",
}

# Programs of `make test-machine PART=kubernetes` that Debian has no package of.
_KUBERNETES = ("kube-apiserver", "kubectl")

PACKAGED_PROGRAMS = (
    Program("postgres", "postgresql"),
    Program("initdb", "postgresql"),
    Program("pgbench", "postgresql"),
    Program("redis-server", "redis-server"),
    Program("nginx", "nginx"),
    Program("prometheus", "prometheus"),
    Program("promtool", "prometheus"),
    *(
        Program(f"prometheus-{name}-exporter", f"prometheus-{name}-exporter")
        for name in ("node", "postgres", "redis", "nginx")
    ),
    Program("mtail", "mtail"),
    Program("wrk", "wrk"),
)


def install() -> None:
    """Install every program that is missing."""
    _unpack(sorted({p.package for p in PACKAGED_PROGRAMS if find(p.name) is None}))
    if _k6_version() != K6_VERSION:
        _require_go()
        with step(f"Building k6 {K6_VERSION} (about 75 s on 2 cores, the first time)"):
            _run(["go", "install", f"go.k6.io/k6@v{K6_VERSION}"], {**_GO_ENV, "GOBIN": str(BIN)})

    if find("toxiproxy-server") is None:
        _require_go()
        with step(f"Building toxiproxy {TOXIPROXY_VERSION} (about 25 s, the first time)"):
            _build_toxiproxy()


def _build_toxiproxy() -> None:
    """Build server and command line; `go install` would name them `server` and `cli`."""
    module = "github.com/Shopify/toxiproxy/v2"
    packages = [f"{module}/cmd/{name}@v{TOXIPROXY_VERSION}" for name in ("server", "cli")]
    version_flag = f"-ldflags=-X={module}.Version={TOXIPROXY_VERSION}"
    BIN.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=BIN) as folder:
        _run(["go", "install", version_flag, *packages], {**_GO_ENV, "GOBIN": folder})
        for name in ("server", "cli"):
            Path(folder, name).rename(BIN / f"toxiproxy-{name}")


def install_vegeta() -> None:
    """Build vegeta, which the tests compare with k6."""
    if find("vegeta") is None:
        _require_go()
        with step(f"Building vegeta {VEGETA_VERSION} (about 20 s, the first time)"):
            package = f"github.com/tsenart/vegeta/v12@v{VEGETA_VERSION}"
            _run(["go", "install", package], {**_GO_ENV, "GOBIN": str(BIN)})


def install_kubernetes() -> None:
    """Install an API server, its store and kubectl, for the tests of Kubernetes."""
    _unpack(["etcd-server"] if find("etcd") is None else [])
    missing = [name for name in _KUBERNETES if find(name) is None]
    if missing:
        _require_go()
        with step(f"Building {' and '.join(missing)} (10 minutes on 2 cores, the first time)"):
            packages = [f"k8s.io/kubernetes/cmd/{name}" for name in missing]
            folder = ROOT / "tests/kubernetes/programs"
            _run(["go", "build", "-C", str(folder), "-o", f"{BIN}/", *packages], _GO_ENV)


def install_browser() -> None:
    """Install the browser for the tests of the report; without apt, those tests are skipped."""
    if find_browser() is None and shutil.which("apt-get") is not None:
        _unpack(list(_BROWSER))


def _unpack(packages: list[str]) -> None:
    if packages:
        with step(f"Unpacking {', '.join(packages)} below .lab"):
            _run([str(ROOT / "native/apt-unpack.sh"), str(PROGRAMS), *packages])


def install_compose() -> None:
    """Build docker compose, with which the tests check the compose files; it needs no engine."""
    target = BIN / "docker-compose"
    if target.exists():
        return
    _require_go()
    with step("Building docker compose (about 2 minutes on 2 cores, the first time)"):
        package = "github.com/docker/compose/v2/cmd"
        _run(
            ["go", "build", "-C", str(ROOT / "tests/compose/cli"), "-o", str(target), package],
            _GO_ENV,
        )


def install_docker() -> None:
    """Install a Docker engine and the tools that build images, for the tests of compose."""
    _unpack(sorted({package for name, package in _DOCKER.items() if find(name) is None}))
    # The package of iptables leaves these names to update-alternatives.
    for name in ("iptables", "ip6tables"):
        program = PROGRAMS / "usr/sbin" / f"{name}-nft"
        if find(name) is None and program.exists():
            program.with_name(name).symlink_to(program.name)


def _k6_version() -> str | None:
    program = find("k6")
    if program is None:
        return None
    result = subprocess.run([str(program), "version"], capture_output=True, text=True, check=False)
    match = re.search(r"v(\d+\.\d+\.\d+)", result.stdout)
    return match.group(1) if match else None


def _require_go() -> None:
    minimum = ".".join(map(str, MIN_GO))
    if shutil.which("go") is None:
        raise LabError(
            "Go is not on the PATH; k6 and toxiproxy are built with it. "
            f"Install Go {minimum} or newer, or put both programs on the PATH."
        )
    version = subprocess.run(
        ["go", "env", "GOVERSION"], capture_output=True, text=True, check=False
    ).stdout.strip()
    match = re.match(r"go(\d+)\.(\d+)", version)
    if not match or (int(match[1]), int(match[2])) < MIN_GO:
        raise LabError(f"Go is too old: found {version or 'none'}, needed {minimum} or newer.")


def _run(argv: list[str], env: dict[str, str] | None = None) -> None:
    result = subprocess.run(
        argv, env={**os.environ, **(env or {})}, capture_output=True, text=True, check=False
    )
    if result.returncode:
        output = "\n".join((result.stdout + result.stderr).strip().splitlines()[-15:])
        raise LabError(f"`{' '.join(argv)}` failed with exit code {result.returncode}:\n{output}")


def _engine() -> str | None:
    """Return LAB_ENGINE; an installation does not require the other settings to be valid."""
    return os.environ.get("LAB_ENGINE") or read_env_file(ROOT / ".env").get("LAB_ENGINE")


def main() -> None:
    try:
        if _engine() == "docker" and not sys.argv[1:]:
            note("LAB_ENGINE=docker: the programs are in its images, and none is needed here.")
            return
        install()
        if "--with-compose" in sys.argv[1:]:
            install_compose()
        if "--with-browser" in sys.argv[1:]:
            install_browser()
        if "--with-vegeta" in sys.argv[1:]:
            install_vegeta()
        if "--with-kubernetes" in sys.argv[1:]:
            install_kubernetes()
        if "--with-docker" in sys.argv[1:]:
            install_docker()
    except LabError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
