"""Images for the compose stack: local ones, official ones if they can be pulled, otherwise
stand-ins built from packages of Debian.

A stand-in has the official name, and the official image's users, paths, variables and start steps.
Its label `load-lab.differs` has the rest.
"""

import json
import platform
import shutil
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from load_lab.experiments.legacy.environment import MissingRequirement, find_python
from load_lab.paths import PROGRAMS
from load_lab.stack.engine import version_in
from load_lab.stack.native import build_cache
from load_lab.stack.native.program_paths import require
from tests.compose.commands import STATE, check_output, run

FOLDER = Path(__file__).parent / "standins"
PREFIX = "load-lab-standin/"
# The release with the major versions of the official images; older debootstraps do not know it.
SUITE, _SCRIPT = "forky", "sid"
BASE = f"{PREFIX}{SUITE}"
LABEL = "load-lab.stand-in"
_ARCHIVE = STATE / "standins.tar"

# Folder in standins/ by image name without the tag.
_FOLDERS = {
    "python": "python",
    "postgres": "postgres",
    "redis": "redis",
    "nginx": "nginx",
    "prom/prometheus": "prometheus",
    "nginx/nginx-prometheus-exporter": "nginx-exporter",
    "grafana/k6": "k6",
    "ghcr.io/shopify/toxiproxy": "toxiproxy",
}
# Programs built by the lab that are copied into a stand-in.
_BINARIES = {"k6": ("k6",), "toxiproxy": ("toxiproxy-server", "toxiproxy-cli")}


@dataclass(frozen=True)
class Image:
    """An image that the stack needs: its origin, or the reason why it is unavailable."""

    name: str
    origin: str
    missing: bool = False


def provide(name: str) -> Image:
    """Provide the image `name`: local, pulled, or a stand-in."""
    if run("docker", "image", "inspect", name).returncode == 0:
        return _describe(name) if name in standins() else Image(name, "was here")
    if run("docker", "pull", "--quiet", name).returncode == 0:
        return Image(name, "official, pulled")
    folder = _FOLDERS.get(name.rpartition(":")[0])
    if folder is None:
        return Image(name, "can't be pulled, and no package stands in for it", missing=True)
    context = _context(folder)
    # The digest rebuilds a stand-in when its files change.
    standin = f"{PREFIX}{folder}:{_digest(context)}"
    if run("docker", "image", "inspect", standin).returncode:
        _build(standin, context)
    check_output("docker", "tag", standin, name)
    return _describe(name)


def _describe(name: str) -> Image:
    """Return a stand-in with its version, and how it differs from the official image."""
    argv = ("docker", "image", "inspect", "--format", "{{json .Config.Labels}}", name)
    labels = json.loads(check_output(*argv))
    entrypoint, *flags = labels["load-lab.version"].split()
    result = run("docker", "run", "--rm", "--entrypoint", entrypoint, name, *flags)
    version, tag = version_in(result.stdout + result.stderr), version_in(name.rpartition(":")[2])
    other = "" if version.split(".")[0] == tag.split(".")[0] else ", ANOTHER MAJOR VERSION"
    return Image(name, f"stand-in, version {version}{other}; {labels['load-lab.differs']}")


def provide_old_python(name: str) -> Image:
    """Provide the image `name`, such as python:3.6.15-bullseye: local, pulled, or a stand-in.

    The stand-in contains this machine's Python of that version.
    """
    if run("docker", "image", "inspect", name).returncode == 0:
        return _describe(name) if name in standins() else Image(name, "was here")
    if run("docker", "pull", "--quiet", name).returncode == 0:
        return Image(name, "official, pulled")
    version = ".".join(name.partition(":")[2].split(".")[:2])
    try:
        python = find_python(version)
    except MissingRequirement as reason:
        return Image(name, f"can't be pulled, and {reason}", missing=True)
    prefix = check_output(str(python), "-c", "import sys; print(sys.base_prefix)").strip()
    context = _context("old-python")
    shutil.copytree(prefix, context / "prefix", symlinks=True)
    _build(name, context, "--build-arg", f"PREFIX={prefix}")
    shutil.rmtree(context)
    return _describe(name)


def _digest(folder: Path) -> str:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:12]


def remove_names() -> None:
    """Remove the official names of the stand-ins; they remain under the stand-in names."""
    for name in standins():
        if not name.startswith((PREFIX, "<none>")):
            check_output("docker", "rmi", "--no-prune", name)


def restore() -> None:
    """Load the stand-ins from the cache, if this engine has none."""
    if not standins() and build_cache.restore(_key(), [_ARCHIVE.name], STATE):
        check_output("docker", "load", "--quiet", "--input", str(_ARCHIVE))
        _ARCHIVE.unlink()


def store() -> None:
    """Put the stand-ins into the cache, unless it has them."""
    folder = build_cache.cache_folder()
    names = [name for name in standins() if name.startswith(PREFIX)]
    if names and folder is not None and not (folder / _key()).exists():
        check_output("docker", "save", "--output", str(_ARCHIVE), *names)
        build_cache.store(_key(), [_ARCHIVE])
        _ARCHIVE.unlink()


def _key() -> str:
    """Return the name in the cache, which changes with the stand-ins' files and programs."""
    digest = sha256(_digest(FOLDER).encode())
    for program in sorted(name for names in _BINARIES.values() for name in names):
        digest.update(require(program).read_bytes())
    return f"standins-{SUITE}-{platform.machine()}-{digest.hexdigest()[:16]}"


def standins() -> list[str]:
    """Return the names of all local stand-ins."""
    shape = ("--format", "{{.Repository}}:{{.Tag}}")
    return check_output("docker", "images", "--filter", f"label={LABEL}=true", *shape).split()


def _context(folder: str) -> Path:
    """Return the build context of a stand-in, without its base image."""
    context = STATE / "contexts" / folder
    shutil.rmtree(context, ignore_errors=True)
    shutil.copytree(FOLDER / folder, context)
    for program in _BINARIES.get(folder, ()):
        shutil.copy(require(program), context)
    return context


def _build(name: str, context: Path, *flags: str) -> None:
    if run("docker", "image", "inspect", BASE).returncode:
        _make_base()
    # The host's network: a build does not need a separate one.
    options = ("--network", "host", "--label", f"{LABEL}=true", "--tag", name)
    check_output("docker", "build", "--quiet", *options, *flags, str(context), DOCKER_BUILDKIT="0")


def _make_base() -> None:
    """Build the base image: Debian's minimal system with this machine's certificates."""
    root = STATE / "root"
    shutil.rmtree(root, ignore_errors=True)
    flags = ("--variant=minbase", "--include=ca-certificates", SUITE, str(root))
    scripts = PROGRAMS / "usr/share/debootstrap"
    variables = {"DEBOOTSTRAP_DIR": str(scripts)} if scripts.is_dir() else {}
    check_output("debootstrap", *flags, _mirror(), _SCRIPT, **variables)
    _adapt(root)
    check_output("tar", "-C", str(root), "-cf", f"{root}.tar", ".")
    check_output("docker", "import", f"{root}.tar", BASE)
    shutil.rmtree(root)
    Path(f"{root}.tar").unlink()


def _mirror() -> str:
    """Return the Debian mirror that this machine uses, which has every release."""
    output = check_output("apt-get", "indextargets", "--format", "$(CODENAME) $(REPO_URI)")
    own = platform.freedesktop_os_release().get("VERSION_CODENAME")
    for line in output.splitlines():
        suite, _, address = line.partition(" ")
        if suite == own:
            return address
    raise RuntimeError(f"apt knows no mirror of Debian {own}, from which to get Debian {SUITE}.")


def _adapt(root: Path) -> None:
    """Copy this machine's certificates, and prevent packages from starting services.

    The machine's package settings are not copied, because they may contain a password.
    """
    certificates = "etc/ssl/certs/ca-certificates.crt"
    if (Path("/") / certificates).exists():
        shutil.copy(Path("/") / certificates, root / certificates)
    (root / "etc/apt/apt.conf.d/standin").write_text(
        'APT::Install-Recommends "false";\nDPkg::Options:: "--force-unsafe-io";\n'
    )
    policy = root / "usr/sbin/policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 101\n")
    policy.chmod(0o755)
