"""Stored results for the terminal."""

from collections.abc import Callable
from typing import Any

from rich.console import RenderableType

from load_lab.bench.wording import bench_table
from load_lab.calibrate.wording import calibration
from load_lab.capacity.wording import capacity
from load_lab.compare.wording import comparison
from load_lab.demo.wording import demo
from load_lab.overload.wording import overload
from load_lab.profile.wording import profile
from load_lab.results.store import Kind
from load_lab.soak.wording import soak

_SUITES: dict[Kind, Callable[[dict[str, Any]], RenderableType]] = {
    "bench": bench_table,
    "bench-growth": bench_table,
    "calibrate": calibration,
    "capacity": capacity,
    "compare": comparison,
    "demo": demo,
    "overload": overload,
    "soak": soak,
    "profile": profile,
}


def suite(kind: Kind, document: dict[str, Any]) -> RenderableType:
    """Return the result of a suite in the same form as after its run."""
    return _SUITES[kind](document)
