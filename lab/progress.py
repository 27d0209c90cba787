"""How far a run of many tasks is, and how long it still takes."""

import time
from contextlib import AbstractContextManager

from rich.progress import BarColumn, ProgressColumn, SpinnerColumn, Task, TextColumn
from rich.progress import Progress as Bar
from rich.text import Text

from lab.console import err, listeners, note


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
