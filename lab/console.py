"""What the user sees while waiting: always on standard error, so that results stay readable."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar

err = Console(stderr=True, highlight=False, soft_wrap=True)
out = Console(highlight=False, soft_wrap=True)


_running: list["Progress"] = []


class Progress:
    """A bar with the time that is left; without a terminal, a line for each task.

    Between `with` and its end the steps of `step` are shown inside the bar.
    """

    def __init__(self, total_seconds: float) -> None:
        self._left = total_seconds
        self._expected = 0.0
        self._began = time.monotonic()
        self._bar = Bar(
            TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[left]}"),
            console=err, transient=True,
        )  # fmt: skip
        self._task = self._bar.add_task("", total=total_seconds, left="")
        self._total = total_seconds
        self._what = ""

    def begin(self, what: str, expected_seconds: float) -> None:
        """The next task; what the one before was expected to take is done."""
        self._left -= self._expected
        self._expected, self._began, self._what = expected_seconds, time.monotonic(), what
        if not err.is_terminal:
            note(f"{what} ({self._time_left()})")
        self.say("")

    def say(self, step: str) -> None:
        """What is being done in the task."""
        gone = min(time.monotonic() - self._began, self._expected)
        self._bar.update(
            self._task,
            description=f"{self._what} [dim]{step}[/dim]",
            completed=self._total - self._left + gone,
            left=self._time_left(),
        )

    def _time_left(self) -> str:
        gone = time.monotonic() - self._began
        minutes = max(self._left - min(gone, self._expected), 0) / 60
        return f"about {minutes:.0f} min left" if minutes >= 1 else "less than a minute left"

    def __enter__(self) -> "Progress":
        _running.append(self)
        if err.is_terminal:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _running.remove(self)
        self._bar.stop()


@contextmanager
def step(what: str) -> Iterator[None]:
    """Say `what` is being done, and afterwards how many seconds it took."""
    if _running:
        _running[-1].say(what)
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
