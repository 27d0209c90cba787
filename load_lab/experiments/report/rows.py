"""The report's data: every planned cell with its repeats, from the stored documents."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from load_lab.experiments.run_folder import CellRun
from load_lab.results.formatting import Spread, spread
from load_lab.results.limit import Limit
from load_lab.results.ratio import Ratio, ratio_of_repeats
from load_lab.results.result import COMPARED, METRICS, ComparedMetric, Result

Document = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """A cell of the plan. `runs` were measured, `failures` failed, `impossible` can't be measured
    on this machine.
    """

    name: str
    axes: dict[str, str]
    planned: int
    runs: tuple[CellRun, ...]
    failures: tuple[CellRun, ...]
    impossible: tuple[CellRun, ...] = ()

    @property
    def state(self) -> str:
        """Return measured, failed, impossible or missing."""
        if self.runs:
            return "measured"
        return "failed" if self.failures else "impossible" if self.impossible else "missing"

    @property
    def title(self) -> str:
        runs = [*self.runs, *self.failures, *self.impossible]
        return runs[0].title or self.name if runs else self.name

    @property
    def results(self) -> list[Result]:
        """Return the results of the measured runs."""
        return [run.result for run in self.runs if run.result]

    def spread(self, name: str) -> Spread | None:
        """Return a metric over the repeats."""
        return spread(self.values(name))

    def ratio_to(self, base: "Cell", name: str) -> Ratio | None:
        """Return the ratio of a metric to the base's; None if one of them has no value."""
        return ratio_of_repeats(base.values(name), self.values(name))

    def values(self, name: str) -> list[float]:
        values = (METRICS[name].of(result) for result in self.results)
        return [value for value in values if value is not None]

    def text(self, name: str) -> str:
        """Return a metric over the repeats as text."""
        return METRICS[name].text(self.spread(name))

    def marked_text(self, name: str) -> str:
        """Return a metric as text, with ≥ if it is a lower bound; a bound of 0 says nothing."""
        return ("≥ " if self.limit and self.median(name) else "") + self.text(name)

    def median(self, name: str) -> float | None:
        spread = self.spread(name)
        return None if spread is None else spread.median

    @cached_property
    def middle(self) -> CellRun | None:
        """Return the repeat with the median goodput, which is drawn."""
        measured = [run for run in self.runs if run.result]
        ordered = sorted(measured, key=lambda run: run.result.goodput if run.result else 0)
        return ordered[(len(ordered) - 1) // 2] if ordered else None

    @property
    def limit(self) -> Limit | None:
        """Return why its rates are lower bounds; None if the target was the limit."""
        limits = {result.lower_bound for result in self.results}
        return next((limit for limit in Limit if limit in limits), None)


@dataclass(frozen=True)
class Axis:
    """The experiment's axes with one role; positions in the header's order, name → title.

    If several axes share the role (`of`), a position combines one position of each.
    """

    name: str
    positions: dict[str, str]
    of: tuple[str, ...] = ()

    def at(self, place: dict[str, str]) -> str:
        """Return the position of a cell."""
        return ", ".join(place[name] for name in self.of if name in place)


@dataclass(frozen=True)
class Report:
    """The data of all sections.

    `rows` are compared with each other (the cache layers), each of `panels` has a picture (the
    loads), which shows `series` next to each other (the implementations).
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
        """Return row, series and panel of a cell."""
        return self.rows.at(cell.axes), self.series.at(cell.axes), self.panels.at(cell.axes)

    def cell(self, name: str) -> Cell | None:
        return next((cell for cell in self.cells if cell.name == name), None)

    def metric(self, panel: str) -> ComparedMetric:
        """Return the metric that compares the cells of a panel."""
        compare = self._layout.get("compare") or "goodput"
        return COMPARED[compare if isinstance(compare, str) else compare.get(panel, "goodput")]

    @property
    def metrics(self) -> list[ComparedMetric]:
        """Return the compared metrics: one, or several for different panels."""
        panels = [panel for panel in self.panels.positions if self.panel_cells(panel)]
        return list(dict.fromkeys(self.metric(panel) for panel in panels)) or [COMPARED["goodput"]]

    @property
    def base_row(self) -> str:
        """Return the baseline of the other rows: from the file, otherwise the first row."""
        base = self.rows.at(self._layout.get("base") or {})
        return base if base in self.rows.positions else next(iter(self.rows.positions))

    def base_of(self, cell: Cell) -> Cell | None:
        """Return the baseline of `cell` from the file; None if the file has none."""
        base = self._layout.get("base")
        axes = {**cell.axes, **(base or {})}
        return next((c for c in self.cells if base and c.axes == axes), None)

    @property
    def _layout(self) -> Document:
        """Return the file's options for the report."""
        return self.header.get("report") or {}

    @property
    def runs(self) -> list[CellRun]:
        return [run for cell in self.cells for run in cell.runs]

    def panel_cells(self, panel: str) -> list[Cell]:
        return [cell for cell in self.cells if self.place(cell)[2] == panel]

    def panel_results(self, panel: str) -> list[tuple[Cell, Result]]:
        """Return the measured cells of a panel, each with the result that charts show."""
        middles = [(cell, cell.middle) for cell in self.panel_cells(panel)]
        return [(cell, run.result) for cell, run in middles if run and run.result]

    @property
    def series_with_cells(self) -> list[str]:
        names = {self.place(cell)[1] for cell in self.cells}
        return [name for name in self.series.positions if name in names]


def build(header: Document, runs: list[CellRun], claims: list[Document]) -> Report:
    """Assign the runs to the planned cells; unplanned cells come last."""
    axes = [_axis(document) for document in header.get("axes", [])]
    planned = [document["name"] for document in header.get("plan", [])]
    names = dict.fromkeys([*planned, *(run.name for run in runs)])
    cells = tuple(_cell(name, planned.count(name), runs, axes) for name in names)
    rows, panels = _roles(axes, header.get("report") or {}, cells)
    remaining = [axis for axis in axes if axis.name not in (*rows.of, *panels.of)]
    return Report(header, cells, tuple(claims), rows, _join(remaining, cells), panels)


_NO_AXIS = Axis("", {"": ""})


def _roles(axes: list[Axis], layout: Document, cells: tuple[Cell, ...]) -> tuple[Axis, Axis]:
    """Return rows and panels: from the file, otherwise `layer` or the longest axis, and `load`."""
    longest = max(axes, key=lambda axis: len(axis.positions), default=_NO_AXIS)
    rows = _select(axes, layout.get("rows")) or _select(axes, ["layer"]) or [longest]
    others = [axis for axis in axes if axis not in rows]
    panels = _select(others, layout.get("panels")) or _select(others, ["load"])
    return _join(rows, cells), _join(panels, cells)


def _select(axes: list[Axis], names: list[str] | None) -> list[Axis]:
    return [axis for name in names or [] for axis in axes if axis.name == name]


def _join(axes: Sequence[Axis], cells: tuple[Cell, ...]) -> Axis:
    """Join axes to one, with the combinations that cells have, in the plan's order."""
    if len(axes) == 1:
        return axes[0]
    of = tuple(axis.name for axis in axes)
    joined = Axis(", ".join(of), {}, of)
    for cell in cells:
        titles = (axis.positions.get(cell.axes.get(axis.name, ""), "") for axis in axes)
        joined.positions[joined.at(cell.axes)] = ", ".join(title for title in titles if title)
    return joined if joined.positions else Axis(joined.name, {"": ""}, of)


def _axis(document: Document) -> Axis:
    positions = {p["name"]: p.get("title", "") for p in document["positions"]}
    return Axis(document["name"], positions, (document["name"],))


def _cell(name: str, planned: int, runs: list[CellRun], axes: list[Axis]) -> Cell:
    cell_runs = sorted((run for run in runs if run.name == name), key=lambda run: run.repeat)
    place = cell_runs[0].axes if cell_runs else None
    if place is None:
        place = dict(zip([axis.name for axis in axes], name.split("/"), strict=False))

    def with_state(state: str) -> tuple[CellRun, ...]:
        return tuple(run for run in cell_runs if run.state == state)

    groups = (with_state(state) for state in ("measured", "failed", "not measured"))
    return Cell(name, place, planned, *groups)
