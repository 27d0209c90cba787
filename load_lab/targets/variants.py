"""Variants of a target: its options, environment, command or commit."""

from dataclasses import replace

import httpx
from lab_settings.messages import shorten

from load_lab.errors import LabError, UsageError
from load_lab.stack import http
from load_lab.targets.cache_in_front import check_cache
from load_lab.targets.commits import find_commit
from load_lab.targets.declared import DeclaredTarget
from load_lab.targets.file import Expect, Start, Variation
from load_lab.targets.mix import read_mix


def vary(target: DeclaredTarget, variation: Variation) -> DeclaredTarget:
    """Return the target as the variation has it; it is not started.

    Raises:
        UsageError: the lab does not start the target, or there is no such option or commit.
    """
    cached = _with_cache(target, variation)
    if not variation.model_fields_set - {"expect", "cache"}:
        return cached
    start = require_start(target)
    changed = start.model_copy(
        update={
            "command": variation.command or start.command,
            "options": start.options | variation.options,
            "env": start.env | variation.env,
        }
    )
    for name in variation.options:
        require_option(changed, name, f"The command of [start] in {target.path}")
    file = cached.file.model_copy(update={"start": changed})
    commit = find_commit(target.start_folder, variation.git) if variation.git else target.commit
    return replace(target, file=file, commit=commit)


def _with_cache(target: DeclaredTarget, variation: Variation) -> DeclaredTarget:
    """Return the target with the variation's mode of its cache."""
    cache = target.file.cache
    if variation.cache and cache is None:
        raise UsageError(
            f"{target.path} has no [cache]. Add it with the operations that may be stored: "
            'operations = ["GET /…"].'
        )
    if cache is None:
        return target
    changed = cache.model_copy(update={"mode": variation.cache or cache.mode})
    check_cache(target.file, changed, read_mix(target.mix_path), target.path)
    return replace(target, file=target.file.model_copy(update={"cache": changed}))


def require_start(target: DeclaredTarget) -> Start:
    """Return how the lab starts the target.

    Raises:
        UsageError: it does not.
    """
    if target.file.start is None:
        raise UsageError(
            f"{target.path} has no [start], so the lab can't start variants of it. Add [start] "
            'with command = ["venv/bin/gunicorn", …].'
        )
    return target.file.start


def require_option(start: Start, name: str, where: str) -> None:
    """Check that a word of the command has the option: else the variant would be the base again.

    Raises:
        UsageError: none has; `where` it is missing.
    """
    if not any(f"{{{name}}}" in word for word in start.command):
        raise UsageError(
            f"{where} has no {{{name}}}, so the option {name} would change nothing. Write it where "
            "the value belongs."
        )


def require_expected(target: DeclaredTarget, expect: Expect) -> None:
    """Check that the response has the text by which the variant is known.

    Raises:
        LabError: it has not.
    """
    url = target.url + expect.path
    try:
        response = http.get(
            url, timeout=target.file.ready_seconds, headers=target.credentials.headers
        )
    except httpx.HTTPError as error:
        raise LabError(f"{url} does not answer ({error}).") from None
    if response.status_code != httpx.codes.OK or expect.contains not in response.text:
        raise LabError(
            f"{url} answers {response.status_code} without {shorten(expect.contains)}, so "
            f"it is not the variant. It begins: {shorten(response.text)}"
        )
