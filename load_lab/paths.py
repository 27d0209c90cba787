"""Two places: what belongs to the lab, and the project, which is the user's folder.

Below a project are the states of its stacks, results and targets.
"""

import hashlib
import os
import shutil
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lab_settings.secret_reader import SecretError, read_secret

from load_lab.errors import LabError, UsageError


def open_to_all(folder: Path) -> Path:
    """Return `folder`, or one below /var/lib where only root can enter `folder`.

    Postgres refuses to run as root, and only root can enter a clone below /root.
    """
    existing = [p for p in (folder, *folder.parents) if p.exists()]
    if os.getuid() != 0 or all(p.stat().st_mode & stat.S_IXOTH for p in existing):
        return folder
    digest = hashlib.sha256(str(folder).encode()).hexdigest()[:12]
    return Path("/var/lib/load-lab") / digest


# Of the lab; other modules ask `lab_file`.
ROOT = Path(__file__).resolve().parent.parent


def lab_file(name: str = "") -> Path:
    """Return a file or folder of the lab: k6's scripts, templates, the reference app, programs."""
    return ROOT / name


EXPERIMENTS = lab_file("experiments")
# Those for a target of the user's own.
OWN_EXPERIMENTS = EXPERIMENTS / "own"
PRESETS = lab_file("presets")
PROGRAMS = open_to_all(lab_file(".lab")) / "programs"
BIN = lab_file(".lab/bin")

# The folders that make a folder a project.
_MARKS = ("targets", ".lab")

# sockaddr_un holds 108 bytes, including the terminating zero.
_MAX_SOCKET_PATH = 100


@dataclass(frozen=True)
class State:
    """The files of one running stack; each stack of a project has one.

    `code` is the checkout whose `backend/` it runs: the lab's, or that of another commit, with a
    virtual environment in `.venv`.
    """

    base: Path
    code: Path = ROOT

    @property
    def backend(self) -> Path:
        return self.code / "backend"

    @property
    def python(self) -> Path:
        """The Python that runs the backend."""
        return Path(sys.executable) if self.code == lab_file() else self.code / ".venv/bin/python"

    @property
    def settings(self) -> Path:
        """The settings of the running stack, written by `lab up` and `lab set`."""
        return self.base / "settings.env"

    @property
    def secrets(self) -> Path:
        return self.base / "secrets"

    def secret(self, name: str) -> str:
        """Return a secret that backend/config/secrets.py created.

        Raises:
            LabError: it is empty or cut.
        """
        try:
            return read_secret(self.secrets / name)
        except SecretError as error:
            raise LabError(str(error)) from None

    @property
    def run(self) -> Path:
        """Rendered configuration, pid files and scratch space."""
        return self.base / "run"

    @property
    def logs(self) -> Path:
        return self.base / "logs"

    @property
    def data(self) -> Path:
        return self.base / "data"

    @property
    def postgres(self) -> Path:
        """Postgres's data directory, in a place that its unprivileged user can enter."""
        return open_to_all(self.base) / "postgres"

    @property
    def postgres_configuration(self) -> Path:
        """Outside the data directory: there, Postgres's user could redirect what root writes."""
        return open_to_all(self.base) / "postgresql.conf"

    @property
    def folders(self) -> list[Path]:
        """All that it has: its base, and the folder of Postgres if that is elsewhere."""
        return list({self.base, self.postgres.parent})

    def remove(self) -> None:
        """Remove the files of a stack that does not run."""
        for folder in self.folders:
            shutil.rmtree(folder, ignore_errors=True)

    @property
    def socket(self) -> Path:
        """Supervisor's socket; below /tmp when the project's path is too long for a socket."""
        path = self.run / "supervisor.sock"
        if len(str(path)) <= _MAX_SOCKET_PATH:
            return path
        digest = hashlib.sha256(str(self.base).encode()).hexdigest()[:12]
        return Path(f"/tmp/load-lab-{os.getuid()}-{digest}") / "supervisor.sock"  # noqa: S108


def make_open(folder: Path) -> None:
    """Create a folder that others can enter, as Postgres's user must, whatever the umask. The mode
    of an existing folder stays: it is up to its owner.
    """
    if not folder.exists():
        folder.mkdir(parents=True)
        folder.chmod(0o755)


def require_own(folder: Path) -> None:
    """Check that `folder`, if it exists, belongs to this user. Any user can create a folder in
    /tmp, so a service in another user's folder is not trustworthy.

    Raises:
        LabError: it belongs to another user, or is a link.
    """
    try:
        status = folder.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise LabError(
            f"{folder} must be a folder of this user's; it is another's, or a link. Remove it, or "
            "put the project where its path is shorter."
        )


def compared_state(number: int) -> State:
    """Return the state of one of the two that a comparison runs at once."""
    folder = current_state().base / "compare" / str(number)
    return State(folder, folder / "code")


def separate_states() -> list[State]:
    """Return the states of stacks that commands start for themselves, next to the project's."""
    base = current_state().base
    return [*map(State, sorted(base.glob("compare/*"))), *map(State, base.glob("bench-start"))]


def paths_outside() -> list[Path]:
    """Return the paths outside the clone that are deleted with it: see `open_to_all`."""
    states = (current_state(), *separate_states())
    files = [path for one in states for path in (one.postgres, one.postgres_configuration)]
    paths = (PROGRAMS, *files)
    return [path for path in paths if lab_file() not in path.parents]


@dataclass(frozen=True)
class Project:
    """The user's folder: their targets and settings, and what the lab writes."""

    folder: Path

    @property
    def results(self) -> Path:
        return self.folder / "results"

    @property
    def targets(self) -> Path:
        return self.folder / "targets"

    @property
    def env_file(self) -> Path:
        return self.folder / ".env"

    @property
    def state(self) -> Path:
        return self.folder / ".lab"

    @property
    def is_checkout(self) -> bool:
        """Whether it is the folder that also has the lab's own files."""
        return self.folder == lab_file()

    def relative(self, path: Path) -> str:
        """Return the path as results and messages name it."""
        return str(path.relative_to(self.folder))


def project() -> Project:
    """Return the project: that of --project or LAB_PROJECT, else the nearest parent of the current
    folder that is one, else the lab's checkout.

    Raises:
        UsageError: the named folder can't be one, or one project is inside another.
    """
    if named := os.environ.get("LAB_PROJECT"):
        return Project(_checked(Path(named)))
    folders = list(_projects_around(Path.cwd()))
    if len(folders) > 1:
        raise UsageError(
            f"{folders[0]} is a project inside another, {folders[-1]} (each has targets/ or "
            f".lab/). Name the one you mean: lab --project {folders[0]} …"
        )
    return Project(folders[0] if folders else lab_file())


def project_of_new_target() -> Project:
    """Return the project; outside of any, and of the checkout, the current folder becomes one.

    Raises:
        UsageError: the current folder can't be one.
    """
    found, current = project(), Path.cwd()
    is_default = found.is_checkout and not os.environ.get("LAB_PROJECT")
    if is_default and lab_file() not in (current, *current.parents):
        return Project(_checked(current))
    return found


def _projects_around(current: Path) -> Iterator[Path]:
    """Yield the projects that contain the current folder, the nearest first; none around the
    checkout.
    """
    for folder in (current, *current.parents):
        if not _is_everything(folder) and any((folder / name).is_dir() for name in _MARKS):
            yield folder
        if folder == lab_file():
            return


def _is_everything(folder: Path) -> bool:
    return folder in (Path.home(), Path(folder.anchor))


def _checked(folder: Path) -> Path:
    resolved = folder.expanduser().resolve()
    if not resolved.is_dir():
        raise UsageError(f"There is no folder {folder} for a project. Create it first.")
    if _is_everything(resolved):
        raise UsageError(f"{resolved} can't be a project: use a folder for it alone.")
    return resolved


def current_state() -> State:
    """Return the state of the project's stack: below `.lab`, or in LAB_STATE_DIR."""
    return State(Path(os.environ.get("LAB_STATE_DIR") or project().state).resolve())


if __name__ == "__main__":
    # For xargs -0: a path may contain spaces.
    print(*paths_outside(), sep="\0", end="")
