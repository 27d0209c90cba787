"""The picture of a breakpoint run: response time, goodput and errors over the arrival rate."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from lab.breakpoint import Bounds, Window
from lab.verdict import Verdict

mpl.use("Agg")

_GOOD, _BAD, _OFFERED, _BROKEN = "#1b7837", "#c51b7d", "#8c8c8c", "#d6604d"


def draw(
    windows: Sequence[Window], verdict: Verdict, bounds: Bounds, title: str, folder: Path
) -> Path:
    """Write breakpoint.svg and breakpoint.png into `folder`; returns the PNG."""
    figure = Figure(figsize=(9, 7), layout="constrained")
    figure.suptitle(f"{title}\n{_wrapped(verdict.text)}", fontsize=11)
    times, rates, errors = figure.subplots(3, 1, sharex=True, height_ratios=[3, 3, 1.4])
    _draw_times(times, windows, bounds)
    _draw_rates(rates, windows)
    _draw_errors(errors, windows, bounds)
    for axes in (times, rates, errors):
        _finish(axes, verdict)
    errors.set_xlabel("offered arrival rate, per second")
    for suffix in ("svg", "png"):
        figure.savefig(folder / f"breakpoint.{suffix}", dpi=120)
    return folder / "breakpoint.png"


def _draw_times(axes: Axes, windows: Sequence[Window], bounds: Bounds) -> None:
    timed = [w for w in windows if w.p95_ms]
    axes.plot([w.offered for w in timed], [w.p95_ms or 0 for w in timed], color=_BAD, label="p95")
    axes.axhline(bounds.p95_ms, color=_OFFERED, linestyle=":", label="bound")
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_ylabel("response time, ms")


def _draw_rates(axes: Axes, windows: Sequence[Window]) -> None:
    offered = [w.offered for w in windows]
    axes.plot(offered, offered, color=_OFFERED, linestyle="--", label="offered")
    axes.plot(offered, [w.achieved for w in windows], color=_BAD, label="achieved")
    axes.plot(offered, [w.goodput for w in windows], color=_GOOD, label="goodput")
    axes.set_ylabel("per second")


def _draw_errors(axes: Axes, windows: Sequence[Window], bounds: Bounds) -> None:
    offered = [w.offered for w in windows]
    axes.plot(offered, [100 * w.error_ratio for w in windows], color=_BAD, label="errors")
    axes.axhline(100 * bounds.error_ratio, color=_OFFERED, linestyle=":", label="bound")
    axes.set_ylabel("errors, %")
    axes.set_ylim(0, 1.1 * max(100 * w.error_ratio for w in windows) + 200 * bounds.error_ratio)


def _finish(axes: Axes, verdict: Verdict) -> None:
    if verdict.break_point is not None:
        at = verdict.break_point.window.offered
        axes.axvline(at, color=_BROKEN, linewidth=1.5, label=f"broke at {at:.1f}/s")
    axes.grid(alpha=0.3)
    axes.legend(loc="upper left", fontsize=8, ncols=2)


def _wrapped(text: str) -> str:
    return text.replace("; ", ";\n")
