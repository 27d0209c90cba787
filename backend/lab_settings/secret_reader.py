"""Read a secret's file, and refuse an incomplete one: an empty token would open every route.

backend/config/secrets.py writes them.
"""

from pathlib import Path

# Those of 48 random bytes in base64. A shorter file was cut, such as by a full disk.
CHARACTERS = 64


# User name for pushing metrics from another host; its password is the secret push_password.
PUSH_USER = "load-lab"


class SecretError(ValueError):
    """A secret is empty or cut. The message has the file, and how to create it anew."""


def read_secret(path: Path) -> str:
    """Return the secret in a file, without the newline at the end that editors add.

    Raises:
        SecretError: it is empty, or shorter than any complete secret.
        OSError: the file can't be read.
    """
    text = path.read_text(errors="replace").strip()
    if len(text) < CHARACTERS:
        raise SecretError(
            f"The secret in {path} is {'cut' if text else 'empty'}: {len(text)} characters, at "
            f"least {CHARACTERS} expected. To create it anew, remove the file and run `lab up` "
            f"(docker: docker compose run --rm secrets rm /run/lab-secrets/{path.name}). For "
            "postgres_password, restore the file instead: Postgres's data was created with it."
        )
    return text
