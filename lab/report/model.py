"""The stored documents as the report needs them: every planned cell with all of its repeats."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lab.report.words import Spread, spread

Document = dict[str, Any]

# A cell with one of these says what it reached, not what the target bears.
LIMITS = {
    "generator_cpu": "limited by the generator",
    "vu_cap": "limited by the number of virtual users",
    "load": "held to the end of the load",
}
SHORT_LIMITS = {"generator_cpu": "generator", "vu_cap": "VU cap", "load": "end of load"}


@dataclass(frozen=True)
class Cell:
    """A cell of the plan. `runs` are those that were measured, `failures` those that failed."""

    name: str
    axes: dict[str, str]
    planned: int
    runs: tuple[Document, ...]
    failures: tuple[Document, ...]

    @property
    def state(self) -> str:
        """measured | failed | missing"""
        return "measured" if self.runs else "failed" if self.failures else "missing"

    @property
    def title(self) -> str:
        known = [*self.runs, *self.failures]
        return known[0].get("title") or self.name if known else self.name

    def figure(self, name: str) -> Spread | None:
        return spread([run.get(name) for run in self.runs])

    def median(self, name: str) -> float | None:
        found = self.figure(name)
        return None if found is None else found.median

    @cached_property
    def middle(self) -> Document | None:
        """The repeat whose goodput lies in the middle: the one that is drawn."""
        ordered = sorted(self.runs, key=lambda run: run.get("goodput") or 0)
        return ordered[(len(ordered) - 1) // 2] if ordered else None

    @property
    def limit(self) -> str | None:
        """A key of LIMITS when the goodput is only a lower bound; else None."""
        found = {limit_of(run) for run in self.runs}
        return next((limit for limit in LIMITS if limit in found), None)


def limit_of(run: Document) -> str | None:
    """A key of LIMITS, or None when it was the target that gave way."""
    if run.get("limited_by") in ("generator_cpu", "vu_cap"):
        return str(run["limited_by"])
    ramp = str(run.get("workload", {}).get("profile", "")).startswith("breakpoint")
    return "load" if ramp and run.get("outcome") == "held" else None


@dataclass(frozen=True)
class Axis:
    """An axis of the experiment; positions in the header's order, name → title."""

    name: str
    positions: dict[str, str]


@dataclass(frozen=True)
class Report:
    """All that the sections are made from.

    `rows` is what is compared (the cache layers), `panels` what gets a picture each (the loads),
    `series` what stands side by side in it (the implementations).
    """

    header: Document
    cells: tuple[Cell, ...]
    claims: tuple[Document, ...]
    rows: Axis
    series: Axis
    panels: Axis

    def at(self, row: str, series: str, panel: str) -> Cell | None:
        return self._places.get((row, series, panel))

    @cached_property
    def _places(self) -> dict[tuple[str, str, str], Cell]:
        return {self.place(cell): cell for cell in self.cells}

    def place(self, cell: Cell) -> tuple[str, str, str]:
        """Row, series and panel of a cell."""
        row, panel = cell.axes.get(self.rows.name, ""), cell.axes.get(self.panels.name, "")
        return row, series_of(cell.axes, self.rows, self.panels), panel

    def cell(self, name: str) -> Cell | None:
        return next((cell for cell in self.cells if cell.name == name), None)

    @property
    def runs(self) -> list[Document]:
        return [run for cell in self.cells for run in cell.runs]

    def of_panel(self, panel: str) -> list[Cell]:
        return [cell for cell in self.cells if self.place(cell)[2] == panel]

    def drawn(self, panel: str) -> list[tuple[Cell, Document]]:
        """The measured cells of a panel, each with the run that stands for it in pictures."""
        return [(cell, cell.middle) for cell in self.of_panel(panel) if cell.middle]

    @property
    def series_with_cells(self) -> list[str]:
        used = {self.place(cell)[1] for cell in self.cells}
        return [name for name in self.series.positions if name in used]


def build(header: Document, cells: list[Document], claims: list[Document]) -> Report:
    """Sort the documents into the plan's places; what was not planned comes last."""
    axes = [_axis(document) for document in header.get("axes", [])]
    rows = _pick(axes, "layer") or max(axes, key=lambda a: len(a.positions), default=_NO_AXIS)
    panels = _pick([a for a in axes if a is not rows], "load") or _NO_AXIS
    planned = [document["name"] for document in header.get("plan", [])]
    names = dict.fromkeys([*planned, *(cell["name"] for cell in cells)])
    made = tuple(_cell(name, planned.count(name), cells, axes) for name in names)
    return Report(header, made, tuple(claims), rows, _series(made, axes, rows, panels), panels)


_NO_AXIS = Axis("", {"": ""})


def _axis(document: Document) -> Axis:
    return Axis(document["name"], {p["name"]: p.get("title", "") for p in document["positions"]})


def _pick(axes: list[Axis], name: str) -> Axis | None:
    return next((axis for axis in axes if axis.name == name), None)


def _cell(name: str, planned: int, cells: list[Document], axes: list[Axis]) -> Cell:
    own = sorted((c for c in cells if c["name"] == name), key=lambda c: c.get("repeat", 1))
    parts = name.split("/")
    where = own[0].get("axes") if own else None
    if where is None:
        where = dict(zip([a.name for a in axes], parts, strict=False))
    measured = tuple(c for c in own if c.get("state") == "measured")
    failed = tuple(c for c in own if c.get("state") == "failed")
    return Cell(name, where, planned, measured, failed)


def series_of(place: dict[str, str], rows: Axis, panels: Axis) -> str:
    return ", ".join(at for name, at in place.items() if name not in (rows.name, panels.name))


def _series(cells: tuple[Cell, ...], axes: list[Axis], rows: Axis, panels: Axis) -> Axis:
    """One series per position of the axes that are left, joined where there are several."""
    rest = [axis for axis in axes if axis not in (rows, panels)]
    if len(rest) == 1:
        return rest[0]
    used = dict.fromkeys(series_of(cell.axes, rows, panels) for cell in cells)
    return Axis(", ".join(axis.name for axis in rest), dict.fromkeys(used or [""], ""))
