"""Add a target: check that it answers, then write its file."""

import os
import re
import shutil
from pathlib import Path
from typing import Any

import tomli_w
from lab_settings.messages import shorten

from load_lab.console import step
from load_lab.errors import UsageError
from load_lab.paths import project_of_new_target
from load_lab.targets.declared import DeclaredTarget
from load_lab.targets.file import VARIABLE, parse_target

# Headers whose value is a secret: it belongs into a variable.
_SECRET_HEADERS = re.compile(r"authorization|cookie|token|key|secret|session|csrf", re.IGNORECASE)
# Their commands run where the files of this folder are not.
_ELSEWHERE = frozenset({"docker", "docker-compose", "kubectl", "nerdctl", "podman", "ssh"})


def add_target(name: str, values: dict[str, Any], headers: list[str], *, replace: bool) -> Path:
    """Write targets/NAME.toml; return its path.

    Raises:
        UsageError: a value is invalid, or there is such a target.
        LabError: the target does not answer.
    """
    path = _new_path(name, replace)
    document = _from_folder(path.parent, values)
    if headers:
        document["headers"] = dict(map(_header, headers))
    file = parse_target(document, f"{name} was not added, since values are invalid")
    target = DeclaredTarget(name, file, path, is_written=False)
    with step(f"Waiting for {target.url}{target.file.ready or ''}"):
        target.require_ready()
    path.parent.mkdir(exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(tomli_w.dumps(document), encoding="utf-8")
    part.replace(path)
    return path


def _new_path(name: str, replace: bool) -> Path:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}", name):
        raise UsageError(f"'{name}' can't name a target. Up to 40 letters, digits and dashes.")
    path = project_of_new_target().targets / f"{name}.toml"
    if path.exists() and not replace:
        raise UsageError(f"There is a target {name} already: {path}. Edit it, or add --replace.")
    return path


def _from_folder(folder: Path, values: dict[str, Any]) -> dict[str, Any]:
    """Return the values with the files that the user names as the target's folder sees them: they
    are typed in another one.

    Raises:
        UsageError: the program that reads the routes is not there.
    """
    named = values.copy()
    if manage := values.get("manage"):
        if shutil.which(manage[0]) is None:
            raise UsageError(
                f"There is no program {shorten(manage[0])} here to read the routes. Type it as you "
                "start it in this folder: --manage 'venv/bin/python manage.py'"
            )
        is_here = Path(manage[0]).name not in _ELSEWHERE
        program = _relative(manage[0], folder) if "/" in manage[0] else manage[0]
        named["manage"] = [
            program,
            *(_relative(word, folder) if is_here else word for word in manage[1:]),
        ]
    if openapi := values.get("openapi"):
        named["openapi"] = _relative(openapi, folder)
    return named


def _relative(word: str, folder: Path) -> str:
    is_file = not Path(word).is_absolute() and Path(word).is_file()
    return os.path.relpath(word, folder) if is_file else word


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    name, value = name.strip(), value.strip()
    if not colon or not value or not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name):
        # Not the text itself: it may have the secret.
        raise UsageError(
            "A --header is written 'Name: value', such as 'Authorization: Token ${SHOP_TOKEN}'."
        )
    if _SECRET_HEADERS.search(name) and not VARIABLE.search(value):
        raise UsageError(
            f"The value of {name} would be stored in a file. Put the secret into a variable, and "
            f"write in single quotes: --header '{name}: … ${{MY_TOKEN}}'"
        )
    return name, value
