"""The paragraph at the top: what each layer bought, said from the figures."""

from lab.report.model import LIMITS, Cell, Report
from lab.report.words import listed, rate, several, times


def answer(report: Report) -> str:
    """What each layer bought, in one paragraph."""
    pairs = [
        (series, panel)
        for panel in report.panels.positions
        for series in report.series_with_cells
        if _base(report, series, panel)
    ]
    if not pairs:
        return _no_base(report)
    others = [text for pair in pairs[1:] if (text := _best(report, *pair))]
    first = _ladder(report, *pairs[0])
    if not others:
        return first
    baseline = next(iter(report.rows.positions))
    return f"{first} From {baseline} to the best layer: {'; '.join(others)}."


def tally(report: Report) -> str:
    """How many claims hold, and what is missing."""
    return " ".join([*_claims(report), *_gaps(report)])


def _base(report: Report, series: str, panel: str) -> Cell | None:
    """The cell of the first layer: what every other one is compared with."""
    cell = report.at(next(iter(report.rows.positions)), series, panel)
    return cell if cell and cell.median("goodput") is not None else None


def _no_base(report: Report) -> str:
    first = next(iter(report.rows.positions))
    if not report.runs:
        return "Nothing was measured."
    return f"{first or 'What all is compared with'} was not measured, so no step can be told."


def _ladder(report: Report, series: str, panel: str) -> str:
    base = _base(report, series, panel)
    if base is None:
        return _no_base(report)
    first = next(iter(report.rows.positions))
    steps = [
        f"{name} {_step(cell, base)}"
        for name in list(report.rows.positions)[1:]
        if (cell := report.at(name, series, panel)) and cell.runs
    ]
    where = _where(series, panel)
    start = f"{where}: {first} gave {_amount(base)} answers in time per second"
    return f"{start}, {listed(steps)}." if steps else f"{start}."


def _where(series: str, panel: str) -> str:
    names = [name for name in (panel, series) if name]
    return f"For {', '.join(names)}" if names else "Over all"


def _amount(cell: Cell) -> str:
    return ("at least " if cell.limit else "") + rate(cell.median("goodput"))


def _step(cell: Cell, base: Cell) -> str:
    why = f", {LIMITS[cell.limit]}" if cell.limit else ""
    return f"{_amount(cell)} ({_factor(cell, base)}{why})"


def _factor(cell: Cell, base: Cell) -> str:
    value, first = cell.median("goodput") or 0, base.median("goodput") or 0
    return times(value / first) if first else "from nothing"


def _best(report: Report, series: str, panel: str) -> str | None:
    """From the first layer to the best one."""
    base = _base(report, series, panel)
    found = [c for row in report.rows.positions if (c := report.at(row, series, panel)) and c.runs]
    best = max(found, key=lambda cell: cell.median("goodput") or 0)
    if base is None or best is base:
        return None
    where = ", ".join(name for name in (panel, series) if name)
    steps = f"{_amount(base)} → {_step(best, base)}"
    return f"{where} {steps} by {report.place(best)[0]}"


def _claims(report: Report) -> list[str]:
    if not report.claims:
        return []
    verdicts = [claim["verdict"] for claim in report.claims]
    holding, not_holding, open_ = (
        verdicts.count(verdict) for verdict in ("holds", "does not hold", "not measured")
    )
    counted = [
        f"{holding} {'holds' if holding == 1 else 'hold'}",
        f"{not_holding} {'does' if not_holding == 1 else 'do'} not hold",
        f"{open_} {'was' if open_ == 1 else 'were'} not measured",
    ]
    return [f"Of {several(len(verdicts), 'claim')}, {listed(counted)}."]


def _gaps(report: Report) -> list[str]:
    missing = sum(cell.state == "missing" for cell in report.cells)
    failed = sum(cell.state == "failed" for cell in report.cells)
    if not missing + failed:
        return [f"All {several(len(report.cells), 'planned cell')} were measured."]
    total = several(len(report.cells), "planned cell")
    return [f"Of {total}, {failed} failed and {missing} {'is' if missing == 1 else 'are'} missing."]
