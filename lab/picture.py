"""The picture of an open-model run: response time, goodput and errors over the arrival rate."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from lab.breakpoint import Bounds, Window
from lab.verdict import Verdict

mpl.use("Agg")

_GOOD, _BAD, _OFFERED, _BROKEN = "#1b7837", "#c51b7d", "#8c8c8c", "#d6604d"


@dataclass(frozen=True)
class _Over:
    """What the curves are drawn over: the arrival rate where it only rises, else time."""

    rate: bool

    @property
    def label(self) -> str:
        return "offered arrival rate, per second" if self.rate else "seconds into the load"

    def x(self, window: Window) -> float:
        return window.offered if self.rate else window.end


def draw(
    windows: Sequence[Window], verdict: Verdict, bounds: Bounds, title: str, path: Path
) -> Path:
    """Write the picture as `path`.svg and `path`.png; returns the PNG."""
    over = _Over(rate=all(a.offered < b.offered for a, b in pairwise(windows)))
    figure = Figure(figsize=(9, 7), layout="constrained")
    wrapped = verdict.text.replace("; ", ";\n")
    figure.suptitle(f"{title}\n{wrapped}", fontsize=11)
    times, rates, errors = figure.subplots(3, 1, sharex=True, height_ratios=[3, 3, 1.4])
    _draw_times(times, windows, bounds, over)
    _draw_rates(rates, windows, over)
    _draw_errors(errors, windows, bounds, over)
    for axes in (times, rates, errors):
        _finish(axes, verdict, over)
    errors.set_xlabel(over.label)
    for suffix in ("svg", "png"):
        figure.savefig(path.with_suffix(f".{suffix}"), dpi=120)
    return path.with_suffix(".png")


def _draw_times(axes: Axes, windows: Sequence[Window], bounds: Bounds, over: _Over) -> None:
    timed = [(over.x(window), window.p95_ms) for window in windows if window.p95_ms]
    axes.plot([x for x, _ in timed], [p95 for _, p95 in timed], color=_BAD, label="p95")
    axes.axhline(bounds.p95_ms, color=_OFFERED, linestyle=":", label="bound")
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_ylabel("response time, ms")


def _draw_rates(axes: Axes, windows: Sequence[Window], over: _Over) -> None:
    x = [over.x(window) for window in windows]
    axes.plot(x, [w.offered for w in windows], color=_OFFERED, linestyle="--", label="offered")
    axes.plot(x, [w.achieved for w in windows], color=_BAD, label="achieved")
    axes.plot(x, [w.goodput for w in windows], color=_GOOD, label="goodput")
    axes.set_ylim(bottom=0)
    axes.set_ylabel("per second")


def _draw_errors(axes: Axes, windows: Sequence[Window], bounds: Bounds, over: _Over) -> None:
    percent = [100 * window.error_ratio for window in windows]
    axes.plot([over.x(window) for window in windows], percent, color=_BAD, label="errors")
    axes.axhline(100 * bounds.error_ratio, color=_OFFERED, linestyle=":", label="bound")
    axes.set_ylabel("errors, %")
    axes.set_ylim(0, 1.1 * max(percent) + 200 * bounds.error_ratio)


def _finish(axes: Axes, verdict: Verdict, over: _Over) -> None:
    if verdict.break_point is not None:
        window = verdict.break_point.window
        label = f"broke at {window.offered:.1f}/s"
        axes.axvline(over.x(window), color=_BROKEN, linewidth=1.5, label=label)
    axes.grid(alpha=0.3)
    axes.legend(loc="upper left", fontsize=8, ncols=2)
