"""The paragraph at the top: the effect of each layer, server or arm, as text."""

from lab.analysis.formatting import join_words, quantity, times
from lab.analysis.result import ComparedMetric
from lab.report.model import LIMITS, Cell, Report

# More than these would need a table instead of a paragraph.
_MOST_PAIRS = 12
_MOST_ROWS = 12


def answer(report: Report) -> str:
    """Return one paragraph about the effect of each row."""
    pairs = _pairs(report)
    if not pairs:
        return _no_base(report)
    others = [text for pair in pairs[1:] if (text := _best(report, *pair))]
    first = _ladder(report, *pairs[0])
    if not others:
        return first
    what = report.rows.name or "cell"
    return f"{first} From {report.base_row} to the best {what}: {'; '.join(others)}."


def tally(report: Report) -> str:
    """Return how many claims hold, and what is missing."""
    return " ".join([*_claims(report), *_gaps(report)])


def _pairs(report: Report) -> list[tuple[str, str]]:
    """Return series and panels that have a baseline.

    If there are many, only those whose panel has a published result.
    """
    pairs = [
        (series, panel)
        for panel in report.panels.positions
        for series in report.series_with_cells
        if _base(report, series, panel)
    ]
    if len(pairs) <= _MOST_PAIRS:
        return pairs
    panels = {report.place(cell)[2] for cell in _published(report)}
    return [pair for pair in pairs if pair[1] in panels] or pairs[:_MOST_PAIRS]


def _rows(report: Report) -> list[str]:
    """Return all rows; if there are many, only those with a published result."""
    rows = list(report.rows.positions)
    named = {report.place(cell)[0] for cell in _published(report)}
    return rows if len(rows) <= _MOST_ROWS or not named else [r for r in rows if r in named]


def _published(report: Report) -> list[Cell]:
    named = {each["cell"] for each in report.header.get("published", [])}
    return [cell for cell in report.cells if cell.name in named]


def _base(report: Report, series: str, panel: str) -> Cell | None:
    """Return the cell of the base row, the baseline of the others."""
    cell = report.at(report.base_row, series, panel)
    return cell if cell and cell.median(report.metric(panel).name) is not None else None


def _no_base(report: Report) -> str:
    if not report.runs:
        return "Nothing was measured."
    what = report.base_row or "What all is compared with"
    return f"{what} was not measured, so no step can be told."


def _ladder(report: Report, series: str, panel: str) -> str:
    base, metric = _base(report, series, panel), report.metric(panel)
    if base is None:
        return _no_base(report)
    steps = [
        f"{name} {_step(cell, base, metric)}"
        for name in _rows(report)
        if (cell := report.at(name, series, panel)) and cell is not base
        if cell.median(metric.name) is not None
    ]
    where = _where(series, panel)
    amount = _amount(base, metric)
    start = f"{where}: {report.base_row} {metric.verb} {amount} {metric.phrase}"
    return f"{start}, {join_words(steps)}." if steps else f"{start}."


def _where(series: str, panel: str) -> str:
    names = [name for name in (panel, series) if name]
    return f"For {', '.join(names)}" if names else "Over all"


def _amount(cell: Cell, metric: ComparedMetric) -> str:
    least = "at least " if metric.bounded and cell.limit else ""
    return least + metric.form(cell.median(metric.name))


def _step(cell: Cell, base: Cell, metric: ComparedMetric) -> str:
    why = f", {LIMITS[cell.limit]}" if metric.bounded and cell.limit else ""
    return f"{_amount(cell, metric)} ({_factor(cell, base, metric)}{why})"


def _factor(cell: Cell, base: Cell, metric: ComparedMetric) -> str:
    value, first = cell.median(metric.name) or 0, base.median(metric.name) or 0
    return times(value / first) if first else "from nothing"


def _best(report: Report, series: str, panel: str) -> str | None:
    """Return the step from the base to the best cell; None if the base is the best."""
    base, metric = _base(report, series, panel), report.metric(panel)
    rows = (report.at(row, series, panel) for row in report.rows.positions)
    found = [c for c in rows if c and c.median(metric.name) is not None]
    choose = min if metric.less_is_better else max
    best = choose(found, key=lambda cell: cell.median(metric.name) or 0)
    if base is None or best is base:
        return None
    where = ", ".join(name for name in (panel, series) if name)
    unit = f" {metric.phrase}" if len(report.metrics) > 1 else ""
    steps = f"{_amount(base, metric)}{unit} → {_step(best, base, metric)}"
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
    return [f"Of {quantity(len(verdicts), 'claim')}, {join_words(counted)}."]


def _gaps(report: Report) -> list[str]:
    states = [cell.state for cell in report.cells]
    failed, impossible, missing = (
        states.count(state) for state in ("failed", "impossible", "missing")
    )
    total = quantity(len(report.cells), "planned cell")
    if not missing + failed + impossible:
        return [f"All {total} were measured."]
    could_not = [f"{impossible} could not be measured here"] if impossible else []
    gone = f"{missing} {'is' if missing == 1 else 'are'} missing"
    return [f"Of {total}, {join_words([f'{failed} failed', *could_not, gone])}."]
