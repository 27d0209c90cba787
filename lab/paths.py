"""Where things lie: the project's folders, and the state of one running stack."""

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from lab.errors import LabError


def open_to_all(folder: Path) -> Path:
    """`folder`, or one below /var/lib where root keeps it shut to the user that Postgres runs as.

    Postgres refuses to run as root, and a clone below /root can be entered by root alone.
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
PROGRAMS = open_to_all(ROOT / ".lab") / "programs"
BIN = ROOT / ".lab" / "bin"

# sockaddr_un holds 108 bytes, the closing zero included.
_LONGEST_SOCKET_PATH = 100


@dataclass(frozen=True)
class State:
    """The files of one running stack; two stacks of one project have two of these."""

    base: Path

    @property
    def settings(self) -> Path:
        """The settings of the running stack, written by `lab up` and `lab set`."""
        return self.base / "settings.env"

    @property
    def secrets(self) -> Path:
        return self.base / "secrets"

    def secret(self, name: str) -> str:
        """One of the secrets that backend/config/secrets.py made."""
        return (self.secrets / name).read_text().strip()

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
        """Postgres' data directory, where its unprivileged user can enter."""
        return open_to_all(self.base) / "postgres"

    @property
    def postgres_configuration(self) -> Path:
        """Beside the data: what root writes there Postgres's user could have led elsewhere."""
        return open_to_all(self.base) / "postgresql.conf"

    @property
    def socket(self) -> Path:
        """Supervisor's socket; elsewhere when the project lies too deep for a socket's name."""
        path = self.run / "supervisor.sock"
        if len(str(path)) <= _LONGEST_SOCKET_PATH:
            return path
        digest = hashlib.sha256(str(self.base).encode()).hexdigest()[:12]
        return Path(f"/tmp/load-lab-{os.getuid()}-{digest}") / "supervisor.sock"  # noqa: S108


def make_open(folder: Path) -> None:
    """A folder that others may enter, as Postgres's user must, whatever this user's umask is. One
    that is there already is its owner's to open.
    """
    if not folder.exists():
        folder.mkdir(parents=True)
        folder.chmod(0o755)


def require_own(folder: Path) -> None:
    """What answers in a folder that another user has made is not to be believed: all may make one
    in /tmp.

    Raises:
        LabError: it is another user's, or a link.
    """
    try:
        found = folder.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise LabError(
            f"{folder} must be a folder of this user's; it is another's, or a link. Remove it, or "
            "put the project where its path is shorter."
        )


def outside() -> list[Path]:
    """What lies outside the clone and goes with it: see `open_to_all`."""
    state = current_state()
    known = (PROGRAMS, state.postgres, state.postgres_configuration)
    return [path for path in known if ROOT not in path.parents]


def current_state() -> State:
    """The state directory: `.lab`, or what LAB_STATE_DIR names."""
    return State(Path(os.environ.get("LAB_STATE_DIR") or ROOT / ".lab").resolve())


if __name__ == "__main__":
    # For xargs -0: a name may have spaces in it.
    print(*outside(), sep="\0", end="")
