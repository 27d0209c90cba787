"""The tables: claims, cells, settings."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lab.analysis.figures import broke_at
from lab.analysis.formatting import (
    NOTHING,
    mebibytes,
    percent,
    ranged,
    rate,
    spread,
    whole,
)
from lab.report.blocks import Column, Entry, Table, Tone, columns, entries
from lab.report.figures import Figure
from lab.report.model import LIMITS, Cell, Document, Report

_VERDICTS: dict[str, Tone] = {"holds": "good", "does not hold": "bad", "not measured": "unsure"}


def claims(report: Report) -> Table:
    rows = [
        entries(
            claim["text"],
            Entry(claim["verdict"], _VERDICTS.get(claim["verdict"], "unsure")),
            claim.get("published") or NOTHING,
            measured(claim),
            claim.get("holds") or NOTHING,
            "; ".join(claim.get("notes") or []) or NOTHING,
        )
        for claim in report.claims
    ]
    titles = ("claim", "verdict", "published", "measured here", "holds when", "notes")
    return Table(columns(*titles), rows)


def measured(claim: Document) -> str:
    """ "none 1.4, redis 61.0"."""
    found = claim.get("measured") or {}
    return ", ".join(f"{name} {_value(value)}" for name, value in found.items()) or NOTHING


def _value(value: Any) -> str:
    if not isinstance(value, int | float):
        return NOTHING
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


_Places = list[tuple[str, str]]
_MOST_COLUMNS = 12


def compared(report: Report) -> Table:
    """The comparison picture in figures.

    A line per row, a column per load and series; where those are many, a column per series.
    """
    places = [
        (series, panel)
        for panel in report.panels.positions
        for series in report.series_with_cells
        if any(report.at(row, series, panel) for row in report.rows.positions)
    ]
    table = _by_panel if len(places) > _MOST_COLUMNS else _by_place
    head, rows = table(report, places)
    return Table(head, rows, _compared_caption(report.figures))


def _compared_caption(figures: list[Figure]) -> str:
    lower = any(figure.bounded for figure in figures)
    bound = " ≥ is a lower bound, for the reason beside it." if lower else ""
    said = " ".join(figure.caption for figure in figures)
    return f"{said} With repeats the median (least–most).{bound}"


def _by_place(
    report: Report, places: _Places
) -> tuple[tuple[Column, ...], list[tuple[Entry, ...]]]:
    several = len(report.figures) > 1
    head = []
    for series, panel in places:
        what = f": {report.figure(panel).axis}" if several else ""
        head.append(f"#{', '.join(n for n in (panel, series) if n) or 'all'}{what}")
    rows = [
        entries(name, title or NOTHING, *(_bounded(report, name, *place) for place in places))
        for name, title in report.rows.positions.items()
        if any(report.at(name, *place) for place in places)
    ]
    return columns(report.rows.name or "cell", "what it is", *head), rows


def _by_panel(
    report: Report, places: _Places
) -> tuple[tuple[Column, ...], list[tuple[Entry, ...]]]:
    series = list(dict.fromkeys(one for one, _ in places))
    rows = [
        entries(panel, name, *(_bounded(report, name, one, panel) for one in series))
        for panel in dict.fromkeys(panel for _, panel in places)
        for name in report.rows.positions
        if any(report.at(name, one, panel) for one in series)
    ]
    head = columns(report.panels.name, report.rows.name, *(f"#{one or 'all'}" for one in series))
    return head, rows


def _bounded(report: Report, row: str, series: str, panel: str) -> Entry:
    return bounded(report.at(row, series, panel), report.figure(panel))


def bounded(cell: Cell | None, figure: Figure) -> Entry:
    """A cell's figure, marked when something other than the target was the limit."""
    if cell is None:
        return Entry(NOTHING)
    found = cell.figure(figure.name)
    if found is None:
        return Entry("failed" if cell.state == "failed" else "not measured", "unsure")
    if cell.limit and figure.bounded:
        return Entry(f"≥ {figure.said(found)}, {LIMITS[cell.limit]}", "unsure")
    return Entry(figure.said(found))


@dataclass(frozen=True)
class _Figure:
    """A column of the table of all cells; not `always` one is left out where no cell has it."""

    title: str
    name: str
    form: Callable[[float | None], str]
    always: bool = True


_FIGURES = (
    _Figure("#requests", "requests", whole),
    _Figure("#successes", "successes", whole, always=False),
    _Figure("#successes/s at most", "max_rps", rate, always=False),
    _Figure("#answers/s", "answers_per_second", rate, always=False),
    _Figure("#requests/s", "rps", rate),
    _Figure("#failed, %", "failed_ratio", percent),
    _Figure("#cut off", "unfinished", whole, always=False),
    _Figure("#p50, ms", "p50_ms", whole),
    _Figure("#p90, ms", "p90_ms", whole, always=False),
    _Figure("#p95, ms", "p95_ms", whole),
    _Figure("#p99, ms", "p99_ms", whole),
    _Figure("#dropped iterations", "dropped_iterations", whole),
    _Figure("#memory, MiB", "memory_peak_bytes", mebibytes, always=False),
    _Figure("#CPU speed, million turns/s", "cpu_speed", rate, always=False),
)


def cells(report: Report) -> Table:
    """Every planned cell with all of its figures."""
    shown = [f for f in _FIGURES if f.always or any(cell.figure(f.name) for cell in report.cells)]
    titles = columns(
        *("cell", "state", "#repeats", "#goodput, per s", "#broke at, per s", "limited by"),
        *(figure.title for figure in shown),
        *("#generator CPU, %", "bodies built", "warmed by", "#seconds, in all"),
    )
    return Table(
        titles,
        [_cell(cell, shown) for cell in report.cells],
        "With repeats: the median (least–most). Broke at: the rate that was borne when three "
        "windows in a row had broken a bound. ≥: a lower bound, see limited by.",
        dense=True,
    )


def _cell(cell: Cell, shown: list[_Figure]) -> tuple[Entry, ...]:
    broke = spread([broke_at(run) for run in cell.runs])
    tone: Tone = "plain" if cell.state == "measured" else "unsure"
    state = {"missing": "not measured", "impossible": "not measured"}.get(cell.state, cell.state)
    return entries(
        cell.name,
        Entry(state, tone),
        f"{len(cell.runs)} of {max(cell.planned, len(cell.runs))}",
        ("≥ " if cell.limit else "") + ranged(cell.figure("goodput")),
        ranged(broke),
        _limited_by(cell),
        *(ranged(cell.figure(figure.name), figure.form) for figure in shown),
        ranged(spread([generator_cpu(run) for run in cell.runs]), percent),
        _builds(cell),
        _warm(cell),
        ranged(cell.figure("seconds"), whole),
    )


def _limited_by(cell: Cell) -> str:
    said = {"generator_cpu": "generator", "vu_cap": "VU cap", "none": "nothing: it held"}
    # A closed load slows down with the target: nothing gives way, and nothing holds.
    judged = [run for run in cell.runs if run.get("outcome") != "measured"]
    found = dict.fromkeys(str(run.get("limited_by")) for run in judged)
    return ", ".join(said.get(name, name) for name in found) or NOTHING


def generator_cpu(run: Document) -> float | None:
    """The share of the generator's CPUs that was busy during the load, 0 to 1."""
    used = [use["load"] for use in run.get("cpu") or []]
    return sum(used) / len(used) if used else None


def _builds(cell: Cell) -> str:
    found = (cell.middle or {}).get("builds") or {}
    return ", ".join(f"{name} {count:,}" for name, count in found.items()) or NOTHING


def _warm(cell: Cell) -> str:
    """What warmed the caches before the load."""
    warm = (cell.middle or {}).get("warm")
    if isinstance(warm, dict):
        parts = [warm.get("profile"), warm.get("scenario"), warm.get("duration")]
        return " ".join(str(part) for part in parts if part)
    return {"none": "nothing", None: NOTHING}.get(warm, str(warm))


def same_settings(report: Report) -> Table:
    """The settings that every measured cell had in common."""
    rows = [entries(n, v) for n, v in sorted(_settings(report).items()) if isinstance(v, str)]
    return Table(columns("setting", "value"), rows, "The same in all cells.")


def different_settings(report: Report) -> Table:
    """What distinguishes the cells: only the settings that differ."""
    names = sorted(n for n, value in _settings(report).items() if not isinstance(value, str))
    rows = [
        entries(cell.name, *(str(cell.middle["settings"].get(name, NOTHING)) for name in names))
        for cell in report.cells
        if cell.middle
    ]
    return Table(
        columns("cell", *names), rows, "The settings in which the cells differ.", dense=True
    )


def _settings(report: Report) -> dict[str, str | None]:
    """Setting → its value, or None where cells differ."""
    found: dict[str, str | None] = {}
    documents = [run.get("settings") or {} for run in report.runs]
    for name in {name for document in documents for name in document}:
        values = {str(document.get(name, NOTHING)) for document in documents}
        found[name] = values.pop() if len(values) == 1 else None
    return found
