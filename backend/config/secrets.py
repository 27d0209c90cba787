"""The stack's secrets: files of mode 600, generated once, without default values.

python -m config.secrets DIRECTORY [READERS]

In the folder READERS, each program of the docker engine gets a subfolder with copies of only the
secrets that it needs.
"""

import base64
import hashlib
import os
import secrets
import sys
from dataclasses import dataclass
from pathlib import Path

from lab_settings.secret_reader import PUSH_USER, SecretError, read_secret

NAMES = (
    *("secret_key", "lab_token", "postgres_password", "hotel_password", "monitor_password"),
    *("redis_password", "grafana_password", "push_password"),
)


@dataclass(frozen=True)
class Reader:
    """A program of the docker engine: its user id, and the secrets that it can read."""

    uid: int
    names: tuple[str, ...]


_DJANGO = ("secret_key", "lab_token", "hotel_password", "redis_password")
# By the volume `secrets-…` that contains them; tests/stack/test_compose_closed.py compares the
# users.
READERS = {
    "backend": Reader(10001, _DJANGO),
    "init": Reader(10001, (*_DJANGO, "postgres_password", "monitor_password")),
    "legacy": Reader(10001, ("hotel_password",)),
    "postgres": Reader(999, ("postgres_password",)),
    "redis": Reader(999, ("redis_password", "redis.acl")),
    "alloy": Reader(0, ("monitor_password", "redis_password")),
    "grafana": Reader(10001, ("grafana_password",)),
    "push-gate": Reader(101, ("push.htpasswd",)),
}


def make_secrets(folder: Path) -> list[str]:
    """Create the secrets that are missing in `folder`. Return their names.

    Raises:
        SecretError: an existing one is empty or cut.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # The root folder of a volume exists already, and everyone can read it.
    if folder.stat().st_mode & 0o077:
        folder.chmod(0o700)
    missing = [name for name in NAMES if not (folder / name).exists()]
    for name in missing:
        _update(folder / name, secrets.token_urlsafe(48))
    for name in NAMES:
        read_secret(folder / name)
    for name, text in _hash_files(folder).items():
        _update(folder / name, text)
    return missing


def distribute_secrets(folder: Path, readers: Path) -> None:
    """Write each reader's copies, readable only by it. Needs the right to change file owners."""
    for name, reader in READERS.items():
        target = readers / name
        target.mkdir(mode=0o700, parents=True, exist_ok=True)
        if target.stat().st_uid == os.geteuid():
            target.chmod(0o700)
        if target.stat().st_uid != reader.uid:
            os.chown(target, reader.uid, -1)
        for secret in reader.names:
            _update(target / secret, (folder / secret).read_text().strip(), reader.uid)


def _hash_files(folder: Path) -> dict[str, str]:
    """Return the files that programs read in their own format. They contain only hashes.

    Unsalted, fast hashes are sufficient, since a secret is 48 random bytes.
    """
    redis = hashlib.sha256(read_secret(folder / "redis_password").encode()).hexdigest()
    # SHA-1 is the fastest that every Nginx supports; Nginx checks it on each push.
    password = read_secret(folder / "push_password").encode()
    push = hashlib.sha1(password, usedforsecurity=False).digest()
    return {
        # https://redis.io/docs/latest/operate/oss_and_stack/management/security/acl/
        "redis.acl": f"user default on #{redis} ~* &* +@all\n",
        # https://nginx.org/en/docs/http/ngx_http_auth_basic_module.html
        "push.htpasswd": f"{PUSH_USER}:{{SHA}}{base64.b64encode(push).decode()}\n",
    }


def _update(path: Path, text: str, uid: int | None = None) -> None:
    """Write `text` to the file, unless the file has it already.

    On the disk before it gets its name, so that a full disk or a crash leaves no part of it.
    """
    if path.exists() and path.read_text() == text:
        return
    temporary = path.with_name(f".{path.name}.new")
    temporary.unlink(missing_ok=True)
    _write(temporary, text)
    if uid is not None:
        os.chown(temporary, uid, -1)
    temporary.replace(path)


def _write(path: Path, text: str) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(handle)


def main() -> None:
    if len(sys.argv) not in (2, 3):
        count = len(sys.argv) - 1
        sys.exit(f"usage: python -m config.secrets DIRECTORY [READERS] (found {count} arguments)")
    folder, *readers = map(Path, sys.argv[1:])
    try:
        created = make_secrets(folder)
        for reader_folder in readers:
            distribute_secrets(folder, reader_folder)
    except (SecretError, OSError) as error:
        sys.exit(f"error: {error}")
    print(f"Created in {folder}: {', '.join(created) or 'nothing, all secrets exist'}.")


if __name__ == "__main__":
    main()
