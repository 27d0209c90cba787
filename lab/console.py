"""What the user sees while waiting: always on standard error, so that results stay readable."""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, SpinnerColumn, Task, TextColumn
from rich.progress import Progress as Bar
from rich.text import Text

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


class Progress(AbstractContextManager["Progress"]):
    """A bar with the time that is left; without a terminal, a line for each task.

    While it is shown, `console.step` speaks in it.
    """

    def __init__(self, total_seconds: float) -> None:
        self._total = total_seconds
        self._done = 0.0
        self._expected = 0.0
        self._began = time.monotonic()
        self._what = ""
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), _Left(self))
        self._bar = Bar(*columns, console=err, transient=True)
        self._task = self._bar.add_task("", total=total_seconds)

    def begin(self, what: str, expected_seconds: float) -> None:
        """The next task; what the one before was expected to take is done."""
        self._done += self._expected
        self._expected, self._began, self._what = expected_seconds, time.monotonic(), what
        if not err.is_terminal:
            note(f"{what} ({self.left()})")
        self.say("")

    def say(self, step: str) -> None:
        """What is being done in the task."""
        self._bar.update(self._task, description=f"{self._what} [dim]{step}[/dim]")

    def left(self) -> str:
        """The time that is left, by what the tasks are expected to take; moves the bar there."""
        gone = self._done + min(time.monotonic() - self._began, self._expected)
        self._bar.update(self._task, completed=gone)
        minutes = (self._total - gone) / 60
        return f"about {minutes:.0f} min left" if minutes >= 1 else "less than a minute left"

    def __enter__(self) -> "Progress":
        listeners.append(self.say)
        if err.is_terminal:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        listeners.remove(self.say)
        self._bar.stop()


class _Left(ProgressColumn):
    """Asked ten times a second, whether or not anything was said."""

    def __init__(self, progress: Progress) -> None:
        super().__init__()
        self._progress = progress

    def render(self, _task: Task) -> Text:
        return Text(self._progress.left(), style="dim")
