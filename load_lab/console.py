"""Progress output for the user, on standard error: standard output has only results."""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, ProgressColumn, SpinnerColumn, Task, TextColumn
from rich.progress import Progress as Bar
from rich.text import Text

# Width for a file or a pipe, which have none: tables with names of cells fit.
_WIDTH = 120


def _width() -> int | None:
    """Return the width; None lets rich use the terminal's width or COLUMNS."""
    return None if sys.stdout.isatty() or os.environ.get("COLUMNS") else _WIDTH


err = Console(stderr=True, highlight=False, soft_wrap=True)
out = Console(highlight=False, soft_wrap=True, width=_width())


# Receivers of steps instead of the terminal: a progress bar while it is shown.
listeners: list[Callable[[str], None]] = []


@contextmanager
def step(what: str) -> Iterator[None]:
    """Show `what` while the step runs, then its duration in seconds."""
    if listeners:
        listeners[-1](what)
        yield
        return
    started = time.monotonic()
    if not err.is_terminal:
        err.print(f"  {what} …", markup=False)
    try:
        with err.status(escape(what)):
            yield
    except BaseException:
        err.print(f"[red]✗[/red] {escape(what)}")
        raise
    err.print(f"[green]✓[/green] {escape(what)} [dim]({time.monotonic() - started:.1f} s)[/dim]")


def note(text: str) -> None:
    """Print one line for the user that is not part of the result."""
    err.print(text, markup=False)


def print_json(document: Any) -> None:
    """Print the JSON document of a command with `--json`, on standard output."""
    print(json.dumps(document, indent=2, default=str))


class Progress(AbstractContextManager["Progress"]):
    """A progress bar with the remaining time; without a terminal, one line per task.

    While it is shown, it displays the steps of `console.step`.
    """

    def __init__(self, total_seconds: float = 0.0) -> None:
        self._total = total_seconds
        self._elapsed = 0.0
        self._expected = 0.0
        self._task_started = time.monotonic()
        self._what = ""
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            _RemainingTime(self),
        )
        self._bar = Bar(*columns, console=err, transient=True)
        self._task = self._bar.add_task("", total=total_seconds)

    def begin(
        self, what: str, expected_seconds: float, remaining_seconds: float | None = None
    ) -> None:
        """Begin the next task; the previous one counts with its expected duration.

        `remaining_seconds` is a new estimate for this task and all later ones.
        """
        self._elapsed += self._expected
        if remaining_seconds is not None:
            self._total = self._elapsed + remaining_seconds
            self._bar.update(self._task, total=self._total)
        self._expected, self._task_started, self._what = expected_seconds, time.monotonic(), what
        if not err.is_terminal:
            note(f"{what} ({self.remaining_time()})")
        self.show_step("")

    def show_step(self, step: str) -> None:
        """Show the current step of the task."""
        self._bar.update(self._task, description=f"{escape(self._what)} [dim]{escape(step)}[/dim]")

    def remaining_time(self) -> str:
        """Return the remaining time, from the expected durations of the tasks; move the bar
        there.
        """
        elapsed = self._elapsed + min(time.monotonic() - self._task_started, self._expected)
        self._bar.update(self._task, completed=elapsed)
        minutes = (self._total - elapsed) / 60
        return f"about {minutes:.0f} min left" if minutes >= 1 else "less than a minute left"

    def __enter__(self) -> "Progress":
        listeners.append(self.show_step)
        if err.is_terminal:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        listeners.remove(self.show_step)
        self._bar.stop()


class _RemainingTime(ProgressColumn):
    """The remaining time; rich renders it ten times a second, with or without an update."""

    def __init__(self, progress: Progress) -> None:
        super().__init__()
        self._progress = progress

    def render(self, _task: Task) -> Text:
        return Text(self._progress.remaining_time(), style="dim")
