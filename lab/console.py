"""What the user sees while waiting: always on standard error, so that results stay readable."""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console

# Of a file or a pipe, which have none of their own: tables with names of cells fit in.
_WIDTH = 120


def _width() -> int | None:
    """None lets rich find it: the terminal's own, or what COLUMNS says."""
    return None if sys.stdout.isatty() or os.environ.get("COLUMNS") else _WIDTH


err = Console(stderr=True, highlight=False, soft_wrap=True)
out = Console(highlight=False, soft_wrap=True, width=_width())


# Who is told of steps instead of the terminal: a progress bar while it is shown.
listeners: list[Callable[[str], None]] = []


@contextmanager
def step(what: str) -> Iterator[None]:
    """Say `what` is being done, and afterwards how many seconds it took."""
    if listeners:
        listeners[-1](what)
        yield
        return
    started = time.monotonic()
    if not err.is_terminal:
        err.print(f"  {what} …", markup=False)
    try:
        with err.status(what):
            yield
    except BaseException:
        err.print(f"[red]✗[/red] {what}")
        raise
    err.print(f"[green]✓[/green] {what} [dim]({time.monotonic() - started:.1f} s)[/dim]")


def note(text: str) -> None:
    """One line for the user that is not part of the result."""
    err.print(text, markup=False)


def print_json(document: Any) -> None:
    """The one JSON document of a command with `--json`, on standard output."""
    print(json.dumps(document, indent=2, default=str))
