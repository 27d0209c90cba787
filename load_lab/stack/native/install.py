"""Install the programs of the native engine; `make setup` runs this module.

The machine's own programs are used as they are. Missing programs are unpacked from the
distribution's packages (native/apt-unpack.sh), or built (builds.py), below `.lab`.
"""

import os
import shutil
import sys
from dataclasses import dataclass

from load_lab.console import note, step
from load_lab.errors import LabError
from load_lab.paths import BIN, PROGRAMS, lab_file
from load_lab.settings.env_file import read_env_file
from load_lab.stack.native.builds import (
    COMPOSE,
    K6,
    K6_VERSION,
    KUBERNETES,
    TOXIPROXY,
    VEGETA,
    provide,
    run,
)
from load_lab.stack.native.go import remove_downloads
from load_lab.stack.native.program_paths import find, find_browser, numbers, version_of

# Versions of k6 on the PATH that are used as they are.
MIN_K6, TOO_NEW_K6 = (1, 8, 1), (3,)


@dataclass(frozen=True)
class Program:
    """A program and the Debian package that contains it."""

    name: str
    package: str


# The packages of the browser in which the tests open the report.
_BROWSER = ("chromium", "chromium-common")

# Programs that the compose tests need where the machine has no Docker engine.
_DOCKER = {
    "docker": "docker.io",
    "dockerd": "docker.io",
    "containerd": "containerd",
    "runc": "runc",
    "iptables-nft": "iptables",
    "debootstrap": "debootstrap",
}

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
    if not _has_k6():
        provide(K6)
    if find("toxiproxy-server") is None:
        provide(TOXIPROXY)


def _has_k6() -> bool:
    """Return whether k6 is here: the pinned version below .lab, or one on the PATH that runs the
    scripts.
    """
    program = find("k6")
    if program is None:
        return False
    version = version_of([str(program), "version"])
    if program.parent == BIN:
        return version == K6_VERSION
    return MIN_K6 <= numbers(version) < TOO_NEW_K6


def install_vegeta() -> None:
    """Build vegeta, with which the tests of apps compare k6."""
    if find("vegeta") is None:
        provide(VEGETA)


def install_kubernetes() -> None:
    """Install an API server, its store and kubectl, for the tests of Kubernetes."""
    _unpack(["etcd-server"] if find("etcd") is None else [])
    if any(find(name) is None for name in KUBERNETES.files.values()):
        provide(KUBERNETES)


def install_browser() -> None:
    """Install the browser for the tests of the report; without apt, those tests are skipped."""
    if find_browser() is None and shutil.which("apt-get") is not None:
        _unpack(list(_BROWSER))


def _unpack(packages: list[str]) -> None:
    if not packages:
        return
    names = ", ".join(packages)
    if shutil.which("apt-get") is None:
        raise LabError(
            f"This system has no apt, and these packages are missing: {names}. Put their programs "
            "on the PATH, then run `make setup` again; or use Docker: LAB_ENGINE=docker."
        )
    with step(f"Unpacking {names} below .lab"):
        run([str(lab_file("native/apt-unpack.sh")), str(PROGRAMS), *packages])


def install_compose() -> None:
    """Build docker compose, with which the tests check the compose files; it needs no engine."""
    if not (BIN / "docker-compose").exists():
        provide(COMPOSE)


def install_docker() -> None:
    """Install a Docker engine and the tools that build images, for the compose tests."""
    _unpack(sorted({package for name, package in _DOCKER.items() if find(name) is None}))
    # The package of iptables leaves these names to update-alternatives.
    for name in ("iptables", "ip6tables"):
        program = PROGRAMS / "usr/sbin" / f"{name}-nft"
        if find(name) is None and program.exists():
            program.with_name(name).symlink_to(program.name)


def _engine() -> str | None:
    """Return LAB_ENGINE; an installation does not require the other settings to be valid."""
    return os.environ.get("LAB_ENGINE") or read_env_file(lab_file(".env")).get("LAB_ENGINE")


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
        # Not after a failure, for the next try.
        remove_downloads()
    except LabError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
