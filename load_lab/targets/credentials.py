"""What says who asks: headers with variables, and tokens that a command prints.

No value leaves this process but in k6's environment and in requests to the target.
"""

import base64
import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from load_lab.errors import LabError, UsageError
from load_lab.paths import project
from load_lab.settings.env_file import read_env_file
from load_lab.targets.file import VARIABLE, Auth, TargetFile

_COMMAND_SECONDS = 60


@dataclass(frozen=True)
class Credentials:
    """Headers of each request; `expires` is the Unix time of the token's end, if it says one."""

    headers: Mapping[str, str]
    expires: float | None = None

    def __repr__(self) -> str:
        return f"Credentials({', '.join(self.headers)})"


def credentials(target: TargetFile, folder: Path) -> Credentials:
    """Return the headers of the target file, with the values of their variables.

    Raises:
        UsageError: a variable is not set, or a value can't be a header.
        LabError: the command failed, or printed no token.
    """
    headers = {name: _header(name, value) for name, value in target.headers.items()}
    if target.auth is None:
        return Credentials(headers)
    token = _token(target.auth, folder)
    headers[target.auth.header] = target.auth.value.replace("{token}", token)
    return Credentials(headers, _expiry(token))


def _header(name: str, value: str) -> str:
    filled = fill_variables(value, f"The header {name}")
    if not filled.isprintable() or not filled.isascii():
        raise UsageError(f"The header {name} has characters that a header can't have.")
    return filled


def fill_variables(text: str, what: str, *, quoted: bool = False) -> str:
    """Return the text with the value of each ${VARIABLE}, from the shell or .env; `quoted` as in an
    address.

    Raises:
        UsageError: one is not set.
    """
    variables = read_env_file(project().env_file) | dict(os.environ)
    missing = [name for name in VARIABLE.findall(text) if not variables.get(name)]
    if missing:
        raise UsageError(
            f"{what} needs {missing[0]}, which is not set. Set it: export {missing[0]}=…, or a "
            "line in .env."
        )
    return VARIABLE.sub(
        lambda match: quote(variables[match[1]], safe="") if quoted else variables[match[1]], text
    )


def _token(auth: Auth, folder: Path) -> str:
    """Return the last line that the command prints."""
    what = f"The command of [auth], {auth.command[0]},"
    try:
        process = subprocess.run(
            auth.command,
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=_COMMAND_SECONDS,
        )
    except OSError as error:
        raise LabError(f"{what} can't be run in {folder}: {error.strerror}.") from None
    except subprocess.TimeoutExpired:
        raise LabError(f"{what} did not end within {_COMMAND_SECONDS} s.") from None
    lines = process.stdout.split()
    if process.returncode or not lines:
        # Not its output: that may have the secret.
        raise LabError(
            f"{what} ended with exit code {process.returncode} and {len(lines)} words on its "
            "standard output. Its last line must be the token."
        )
    return lines[-1]


def _expiry(token: str) -> float | None:
    """Return a JSON web token's `exp`, https://www.rfc-editor.org/rfc/rfc7519#section-4.1.4."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        return float(claims["exp"])
    except (ValueError, LookupError, TypeError):
        return None
