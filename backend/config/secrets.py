"""The stack's secrets: files of mode 600, made once, never with a default.

python -m config.secrets DIRECTORY
"""

import os
import secrets
import sys
from pathlib import Path

NAMES = ("secret_key", "postgres_password", "monitor_password", "lab_token", "grafana_password")


def make_secrets(folder: Path) -> list[str]:
    """Make the files that are missing in `folder`, and keep the others; returns what was made."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    missing = [name for name in NAMES if not (folder / name).exists()]
    for name in missing:
        handle = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w") as file:
            file.write(secrets.token_urlsafe(48))
    return missing


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(f"usage: python -m config.secrets DIRECTORY (found {len(sys.argv) - 1} arguments)")
    made = make_secrets(Path(sys.argv[1]))
    print(f"Made in {sys.argv[1]}: {', '.join(made) or 'nothing, all are there'}.")


if __name__ == "__main__":
    main()
