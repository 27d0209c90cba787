"""The stored documents as the report needs them: every planned cell with all of its repeats."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lab.analysis.figures import figure_of
from lab.analysis.formatting import Spread, spread
from lab.analysis.limits import limit_of
from lab.report.figures import FIGURES, Figure

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
    """A cell of the plan. `runs` are those that were measured, `failures` those that failed,
    `impossible` those that this machine can't measure.
    """

    name: str
    axes: dict[str, str]
    planned: int
    runs: tuple[Document, ...]
    failures: tuple[Document, ...]
    impossible: tuple[Document, ...] = ()

    @property
    def state(self) -> str:
        """measured | failed | impossible | missing"""
        if self.runs:
            return "measured"
        return "failed" if self.failures else "impossible" if self.impossible else "missing"

    @property
    def title(self) -> str:
        known = [*self.runs, *self.failures, *self.impossible]
        return known[0].get("title") or self.name if known else self.name

    def figure(self, name: str) -> Spread | None:
        return spread([figure_of(run, name) for run in self.runs])

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


@dataclass(frozen=True)
class Axis:
    """Axes of the experiment in one role; positions in the header's order, name → title.

    Where several axes have the role, `of` them, a position is one of each.
    """

    name: str
    positions: dict[str, str]
    of: tuple[str, ...] = ()

    def at(self, place: dict[str, str]) -> str:
        """The position of a cell."""
        return ", ".join(place[name] for name in self.of if name in place)


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
        return self.rows.at(cell.axes), self.series.at(cell.axes), self.panels.at(cell.axes)

    def cell(self, name: str) -> Cell | None:
        return next((cell for cell in self.cells if cell.name == name), None)

    def figure(self, panel: str) -> Figure:
        """What the cells of a panel are compared by."""
        said = self._shown.get("compare") or "goodput"
        return FIGURES[said if isinstance(said, str) else said.get(panel, "goodput")]

    @property
    def figures(self) -> list[Figure]:
        """What the experiment compares by: one figure, or several of different panels."""
        used = [panel for panel in self.panels.positions if self.of_panel(panel)]
        return list(dict.fromkeys(self.figure(panel) for panel in used)) or [FIGURES["goodput"]]

    @property
    def base_row(self) -> str:
        """What the others are compared with: what the file names, else the first."""
        named = self.rows.at(self._shown.get("base") or {})
        return named if named in self.rows.positions else next(iter(self.rows.positions))

    def base_of(self, cell: Cell) -> Cell | None:
        """The cell that the file says to compare `cell` with; None where it names none."""
        base = self._shown.get("base")
        wanted = {**cell.axes, **(base or {})}
        return next((c for c in self.cells if base and c.axes == wanted), None)

    @property
    def _shown(self) -> Document:
        """What the file says of its report; results of before it could say nothing."""
        return self.header.get("report") or {}

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
    planned = [document["name"] for document in header.get("plan", [])]
    names = dict.fromkeys([*planned, *(cell["name"] for cell in cells)])
    made = tuple(_cell(name, planned.count(name), cells, axes) for name in names)
    rows, panels = _roles(axes, header.get("report") or {}, made)
    rest = [axis for axis in axes if axis.name not in (*rows.of, *panels.of)]
    return Report(header, made, tuple(claims), rows, _joined(rest, made), panels)


_NO_AXIS = Axis("", {"": ""})


def _roles(axes: list[Axis], shown: Document, cells: tuple[Cell, ...]) -> tuple[Axis, Axis]:
    """Rows and panels: what the file says, else `layer` or the longest axis, and `load`."""
    longest = max(axes, key=lambda axis: len(axis.positions), default=_NO_AXIS)
    rows = _named(axes, shown.get("rows")) or _named(axes, ["layer"]) or [longest]
    left = [axis for axis in axes if axis not in rows]
    panels = _named(left, shown.get("panels")) or _named(left, ["load"])
    return _joined(rows, cells), _joined(panels, cells)


def _named(axes: list[Axis], names: list[str] | None) -> list[Axis]:
    return [axis for name in names or [] for axis in axes if axis.name == name]


def _joined(axes: Sequence[Axis], cells: tuple[Cell, ...]) -> Axis:
    """The axes as one. Of several, those combinations that cells have, in the plan's order."""
    if len(axes) == 1:
        return axes[0]
    of = tuple(axis.name for axis in axes)
    found = Axis(", ".join(of), {}, of)
    for cell in cells:
        titles = (axis.positions.get(cell.axes.get(axis.name, ""), "") for axis in axes)
        found.positions[found.at(cell.axes)] = ", ".join(title for title in titles if title)
    return found if found.positions else Axis(found.name, {"": ""}, of)


def _axis(document: Document) -> Axis:
    positions = {p["name"]: p.get("title", "") for p in document["positions"]}
    return Axis(document["name"], positions, (document["name"],))


def _cell(name: str, planned: int, cells: list[Document], axes: list[Axis]) -> Cell:
    own = sorted((c for c in cells if c["name"] == name), key=lambda c: c.get("repeat", 1))
    where = own[0].get("axes") if own else None
    if where is None:
        where = dict(zip([axis.name for axis in axes], name.split("/"), strict=False))

    def those(state: str) -> tuple[Document, ...]:
        return tuple(c for c in own if c.get("state") == state)

    found = (those(state) for state in ("measured", "failed", "not measured"))
    return Cell(name, where, planned, *found)
