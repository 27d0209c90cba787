"""The figures that an experiment may compare its cells by, and how each is said."""

from collections.abc import Callable
from dataclasses import dataclass

from lab.analysis.formatting import Spread, ranged, rate, whole


@dataclass(frozen=True)
class Figure:
    """One figure of a cell.

    "sync `verb` 24.3 `unit`"; `axis` titles an axis. `bounded`: what the generator limits, the
    target may do better.
    """

    name: str
    title: str
    verb: str
    unit: str
    axis: str
    caption: str
    form: Callable[[float | None], str] = rate
    less_is_better: bool = False
    bounded: bool = False

    def said(self, found: Spread | None) -> str:
        return ranged(found, self.form)


def _percentile(share: int) -> Figure:
    return Figure(
        f"p{share}_ms",
        f"Response time, p{share}",
        "took",
        f"ms (p{share})",
        f"response time, p{share} (ms)",
        f"Response time, p{share}: {share} % of the answers took no longer than this.",
        form=milliseconds,
        less_is_better=True,
    )


def milliseconds(value: float | None) -> str:
    """Tenths where they mean something."""
    return rate(value) if value is not None and value < 10 else whole(value)


_ALL = (
    Figure(
        "goodput",
        "Goodput",
        "gave",
        "answers in time per second",
        "goodput (answers in time/s)",
        "Goodput: most answers in time per second in any window of 5 s.",
        bounded=True,
    ),
    Figure(
        "successes",
        "Successful answers",
        "gave",
        "successful answers",
        "successful answers",
        "Successful answers: all that came without an error during the load, however late.",
        form=whole,
    ),
    Figure(
        "rps",
        "Requests per second",
        "answered",
        "requests per second",
        "requests/s",
        "Requests/s: all answers over the length of the load, late and failed ones too.",
        bounded=True,
    ),
    Figure(
        "answers_per_second",
        "Answers per second",
        "gave",
        "successful answers per second",
        "successful answers/s",
        "Answers/s: successful answers over the planned length of the load, however late.",
        bounded=True,
    ),
    Figure(
        "max_rps",
        "Most successful answers per second",
        "gave at most",
        "successful answers per second",
        "successful answers/s, best 5 s",
        "Most successful answers per second in any window of 5 s, however late.",
        bounded=True,
    ),
    *(_percentile(share) for share in (50, 90, 95, 99)),
    Figure(
        "ws_delay_p95_ms",
        "From commit to message, p95",
        "took",
        "ms from commit to message (p95)",
        "commit to message, p95 (ms)",
        "From commit to message: 95 % of the WebSockets' messages took no longer than this.",
        form=milliseconds,
        less_is_better=True,
    ),
)

FIGURES = {figure.name: figure for figure in _ALL}
