"""Paths of the project's folders, and of the state of one running stack."""

import hashlib
import os
import stat
import sys
from dataclasses import dataclass
from pathlib import Path

from lab_settings.secret_reader import SecretError, read_secret

from load_lab.errors import LabError


def open_to_all(folder: Path) -> Path:
    """Return `folder`, or one below /var/lib where only root can enter `folder`.

    Postgres refuses to run as root, and only root can enter a clone below /root.
    """
    existing = [p for p in (folder, *folder.parents) if p.exists()]
    if os.getuid() != 0 or all(p.stat().st_mode & stat.S_IXOTH for p in existing):
        return folder
    digest = hashlib.sha256(str(folder).encode()).hexdigest()[:12]
    return Path("/var/lib/load-lab") / digest


ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results"
EXPERIMENTS = ROOT / "experiments"
PRESETS = ROOT / "presets"
TARGETS = ROOT / "targets"
PROGRAMS = open_to_all(ROOT / ".lab") / "programs"
BIN = ROOT / ".lab" / "bin"

# sockaddr_un holds 108 bytes, including the terminating zero.
_MAX_SOCKET_PATH = 100


@dataclass(frozen=True)
class State:
    """The files of one running stack; each stack of a project has one.

    `code` is the checkout whose `backend/` it runs: this one, or that of another commit, with a
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
        return Path(sys.executable) if self.code == ROOT else self.code / ".venv/bin/python"

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


def paths_outside() -> list[Path]:
    """Return the paths outside the clone that are deleted with it: see `open_to_all`."""
    state = current_state()
    states = (state, *(State(state.base / "compare" / number) for number in ("1", "2")))
    files = [path for one in states for path in (one.postgres, one.postgres_configuration)]
    paths = (PROGRAMS, *files)
    return [path for path in paths if ROOT not in path.parents]


def current_state() -> State:
    """Return the state directory: `.lab`, or LAB_STATE_DIR."""
    return State(Path(os.environ.get("LAB_STATE_DIR") or ROOT / ".lab").resolve())


if __name__ == "__main__":
    # For xargs -0: a path may contain spaces.
    print(*paths_outside(), sep="\0", end="")
