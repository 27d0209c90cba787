"""The paragraph at the top: the effect of each layer, server or arm, as text."""

from load_lab.experiments.report.rows import Cell, Report
from load_lab.results.formatting import join_words, quantity
from load_lab.results.result import ComparedMetric

# More than these would need a table instead of a paragraph.
_MAX_PAIRS = 12
_MAX_ROWS = 12


def answer(report: Report) -> str:
    """Return one paragraph about the effect of each row."""
    pairs = _pairs(report)
    if not pairs:
        return _no_base(report)
    others = [text for pair in pairs[1:] if (text := _best(report, *pair))]
    row_name = report.rows.name or "cell"
    best = f"From {report.base_row} to the best {row_name}: {'; '.join(others)}." if others else ""
    sentences = (_ladder(report, *pairs[0]), best, _repeats(report))
    return " ".join(sentence for sentence in sentences if sentence)


def tally(report: Report) -> str:
    """Return how many claims hold, and what is missing."""
    return " ".join([*_claims(report), *_gaps(report)])


def _repeats(report: Report) -> str:
    """Say what the errors of the ratios are, or why there are none."""
    if any(len(cell.runs) > 1 for cell in report.cells):
        return "± is half of an interval of 90 % by the repeats."
    return "One repeat: how far the ratios are by chance is not known."


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
    if len(pairs) <= _MAX_PAIRS:
        return pairs
    panels = {report.place(cell)[2] for cell in _published(report)}
    return [pair for pair in pairs if pair[1] in panels] or pairs[:_MAX_PAIRS]


def _rows(report: Report) -> list[str]:
    """Return all rows; if there are many, only those with a published result."""
    rows = list(report.rows.positions)
    published_rows = {report.place(cell)[0] for cell in _published(report)}
    return (
        rows
        if len(rows) <= _MAX_ROWS or not published_rows
        else [r for r in rows if r in published_rows]
    )


def _published(report: Report) -> list[Cell]:
    names = {result["cell"] for result in report.header.get("published", [])}
    return [cell for cell in report.cells if cell.name in names]


def _base(report: Report, series: str, panel: str) -> Cell | None:
    """Return the cell of the base row, the baseline of the others."""
    cell = report.at(report.base_row, series, panel)
    return cell if cell and cell.median(report.metric(panel).name) is not None else None


def _no_base(report: Report) -> str:
    if not report.runs:
        return "Nothing was measured."
    name = report.base_row or "What all is compared with"
    return f"{name} was not measured, so no step can be told."


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
    prefix = _prefix(series, panel)
    amount = _amount(base, metric)
    start = f"{prefix}: {report.base_row} {metric.verb} {amount} {metric.phrase}"
    return f"{start}, {join_words(steps)}." if steps else f"{start}."


def _prefix(series: str, panel: str) -> str:
    names = [name for name in (panel, series) if name]
    return f"For {', '.join(names)}" if names else "Over all"


def _amount(cell: Cell, metric: ComparedMetric) -> str:
    value = cell.median(metric.name)
    if value == 0:
        return "no"
    prefix = "at least " if metric.bounded and cell.limit else ""
    return prefix + metric.form(value)


def _step(cell: Cell, base: Cell, metric: ComparedMetric) -> str:
    limit = f", limited by {cell.limit.text}" if metric.bounded and cell.limit else ""
    return f"{_amount(cell, metric)} ({_factor(cell, base, metric)}{limit})"


def _factor(cell: Cell, base: Cell, metric: ComparedMetric) -> str:
    ratio = cell.ratio_to(base, metric.name)
    return ratio.text if ratio else "from nothing"


def _best(report: Report, series: str, panel: str) -> str | None:
    """Return the step from the base to the best cell; None if the base is the best."""
    base, metric = _base(report, series, panel), report.metric(panel)
    rows = (report.at(row, series, panel) for row in report.rows.positions)
    measured_cells = [c for c in rows if c and c.median(metric.name) is not None]
    best_of = min if metric.less_is_better else max
    best = best_of(measured_cells, key=lambda cell: cell.median(metric.name) or 0)
    if base is None or best is base:
        return None
    place = ", ".join(name for name in (panel, series) if name)
    unit = f" {metric.phrase}" if len(report.metrics) > 1 else ""
    steps = f"{_amount(base, metric)}{unit} → {_step(best, base, metric)}"
    return f"{place} {steps} by {report.place(best)[0]}"


def _claims(report: Report) -> list[str]:
    if not report.claims:
        return []
    verdicts = [claim["verdict"] for claim in report.claims]
    holds, fails, undecided, unmeasured = (
        verdicts.count(verdict)
        for verdict in ("holds", "does not hold", "not decided", "not measured")
    )
    counts = [
        f"{holds} {'holds' if holds == 1 else 'hold'}",
        f"{fails} {'does' if fails == 1 else 'do'} not hold",
        *([f"{undecided} {'is' if undecided == 1 else 'are'} not decided"] if undecided else []),
        f"{unmeasured} {'was' if unmeasured == 1 else 'were'} not measured",
    ]
    return [f"Of {quantity(len(verdicts), 'claim')}, {join_words(counts)}."]


def _gaps(report: Report) -> list[str]:
    states = [cell.state for cell in report.cells]
    failed, impossible, missing = (
        states.count(state) for state in ("failed", "impossible", "missing")
    )
    total = quantity(len(report.cells), "planned cell")
    if not missing + failed + impossible:
        return [f"All {total} were measured."]
    impossible_note = [f"{impossible} could not be measured here"] if impossible else []
    missing_note = f"{missing} {'is' if missing == 1 else 'are'} missing"
    return [f"Of {total}, {join_words([f'{failed} failed', *impossible_note, missing_note])}."]
