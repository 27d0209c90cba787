"""The tables: claims, cells, settings."""

from typing import Any

from load_lab.experiments.report.rows import Cell, Document, Report
from load_lab.experiments.schema import Parts
from load_lab.results.blocks import Block, Column, Entry, Table, Tone, columns, entries
from load_lab.results.formatting import (
    NO_VALUE,
    Spread,
    mebibytes,
    median_and_range,
    milliseconds,
    spread,
)
from load_lab.results.result import METRICS, ComparedMetric

_VERDICTS: dict[str, Tone] = {
    "holds": "good",
    "does not hold": "bad",
    "not decided": "unsure",
    "not measured": "unsure",
}


def claims(report: Report) -> Table:
    rows = [
        entries(
            claim["text"],
            Entry(_verdict(claim), _VERDICTS.get(claim["verdict"], "unsure")),
            claim.get("published") or NO_VALUE,
            claim_values(claim),
            claim.get("holds") or NO_VALUE,
            "; ".join(claim.get("notes") or []) or NO_VALUE,
        )
        for claim in report.claims
    ]
    titles = ("claim", "verdict", "published", "measured here", "holds when", "notes")
    return Table(columns(*titles), rows)


def _verdict(claim: Document) -> str:
    basis = claim.get("basis")
    return f"{claim['verdict']} ({basis})" if basis else str(claim["verdict"])


def claim_values(claim: Document) -> str:
    """Return measured values as text, such as "none 1.4, redis 61.0"."""
    values, intervals = claim.get("measured") or {}, claim.get("intervals") or {}
    texts = [
        f"{name} {_value(value)}{_interval(intervals.get(name))}" for name, value in values.items()
    ]
    return ", ".join(texts) or NO_VALUE


def _interval(ends: tuple[float, float] | None) -> str:
    return f" ({_value(ends[0])} to {_value(ends[1])})" if ends else ""


def _value(value: Any) -> str:
    if not isinstance(value, int | float):
        return NO_VALUE
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


_Places = list[tuple[str, str]]
_MAX_COLUMNS = 12


def comparison(report: Report) -> Table:
    """Return the comparison picture as a table.

    One line per row, and one column per load and series; if those are many, one column per series.
    """
    places = [
        (series, panel)
        for panel in report.panels.positions
        for series in report.series_with_cells
        if any(report.at(row, series, panel) for row in report.rows.positions)
    ]
    table = _by_panel if len(places) > _MAX_COLUMNS else _by_place
    head, rows = table(report, places)
    return Table(head, rows, _comparison_caption(report.metrics))


def _comparison_caption(metrics: list[ComparedMetric]) -> str:
    has_bounds = any(metric.bounded for metric in metrics)
    bound = " ≥ is a lower bound; the reason follows it." if has_bounds else ""
    captions = " ".join(metric.caption for metric in metrics)
    return f"{captions} With repeats the median (least–most).{bound}"


def _by_place(
    report: Report, places: _Places
) -> tuple[tuple[Column, ...], list[tuple[Entry, ...]]]:
    mixed = len(report.metrics) > 1
    head = []
    for series, panel in places:
        axis = f": {report.metric(panel).axis}" if mixed else ""
        head.append(f"#{', '.join(n for n in (panel, series) if n) or 'all'}{axis}")
    rows = [
        entries(name, title or NO_VALUE, *(_entry_at(report, name, *place) for place in places))
        for name, title in report.rows.positions.items()
        if any(report.at(name, *place) for place in places)
    ]
    return columns(report.rows.name or "cell", "what it is", *head), rows


def _by_panel(
    report: Report, places: _Places
) -> tuple[tuple[Column, ...], list[tuple[Entry, ...]]]:
    series = list(dict.fromkeys(one for one, _ in places))
    rows = [
        entries(panel, name, *(_entry_at(report, name, one, panel) for one in series))
        for panel in dict.fromkeys(panel for _, panel in places)
        for name in report.rows.positions
        if any(report.at(name, one, panel) for one in series)
    ]
    head = columns(report.panels.name, report.rows.name, *(f"#{one or 'all'}" for one in series))
    return head, rows


def _entry_at(report: Report, row: str, series: str, panel: str) -> Entry:
    return metric_entry(report.at(row, series, panel), report.metric(panel))


def metric_entry(cell: Cell | None, metric: ComparedMetric) -> Entry:
    """Return a cell's metric, marked if something other than the target was the limit."""
    if cell is None:
        return Entry(NO_VALUE)
    value = cell.spread(metric.name)
    if value is None:
        return Entry("failed" if cell.state == "failed" else "not measured", "unsure")
    if cell.limit and metric.bounded:
        return Entry(f"{cell.marked_text(metric.name)}, limited by {cell.limit.text}", "unsure")
    return Entry(metric.text(value))


# The columns of the table of all cells, and those that are omitted if no cell has a value.
_COLUMNS = (
    *("capacity", "capacity_low", "capacity_high"),
    *("requests", "successes", "max_rps", "answers_per_second", "rps", "failed_ratio"),
    *("refused", "unfinished", "p50_ms", "p90_ms", "p95_ms", "p99_ms", "dropped_iterations"),
    *("memory_peak_bytes", "cpu_speed"),
)
_OPTIONAL = {
    *("capacity", "capacity_low", "capacity_high"),
    *("successes", "max_rps", "answers_per_second", "unfinished", "p90_ms"),
    *("memory_peak_bytes", "cpu_speed"),
}
# Omitted if all cells have zero.
_RARE = {"refused"}


def cells(report: Report) -> Table:
    """Return every planned cell with all of its metrics."""
    names = [name for name in _COLUMNS if _has_column(report, name)]
    titles = columns(
        *("cell", "state", "#repeats", _heading("goodput"), _heading("broke_at"), "limited by"),
        *(_heading(name) for name in names),
        *(_heading("generator_cpu"), "bodies built", "warmed by", _heading("seconds")),
    )
    return Table(
        titles,
        [_cell(cell, names) for cell in report.cells],
        "With repeats: the median (least–most). Broke at: the highest sustained rate when "
        "three windows in a row exceeded a limit. ≥: a lower bound, see limited by.",
        dense=True,
    )


def _has_column(report: Report, name: str) -> bool:
    if name in _RARE:
        return any(cell.median(name) for cell in report.cells)
    return name not in _OPTIONAL or any(cell.spread(name) for cell in report.cells)


def _heading(name: str) -> str:
    return f"#{METRICS[name].title}"


def _cell(cell: Cell, names: list[str]) -> tuple[Entry, ...]:
    tone: Tone = "plain" if cell.state == "measured" else "unsure"
    state = {"missing": "not measured", "impossible": "not measured"}.get(cell.state, cell.state)
    return entries(
        cell.name,
        Entry(state, tone),
        f"{len(cell.runs)} of {max(cell.planned, len(cell.runs))}",
        cell.marked_text("goodput"),
        cell.text("broke_at"),
        _limited_by(cell),
        *(cell.text(name) for name in names),
        cell.text("generator_cpu"),
        _builds(cell),
        _warm(cell),
        cell.text("seconds"),
    )


def _limited_by(cell: Cell) -> str:
    # A closed load slows down with the target, so it exceeds no limit and sustains no rate.
    results = [result for result in cell.results if result.outcome != "measured"]
    limits = dict.fromkeys(result.limited_by for result in results)
    return ", ".join(limit.short for limit in limits) or NO_VALUE


def _builds(cell: Cell) -> str:
    builds = cell.middle.result.builds if cell.middle and cell.middle.result else {}
    return ", ".join(f"{name} {count:,}" for name, count in builds.items()) or NO_VALUE


def _warm(cell: Cell) -> str:
    """Return the load that warmed the caches."""
    warm = cell.middle.warm if cell.middle else None
    if isinstance(warm, Parts):
        return " ".join(part for part in (warm.profile, warm.scenario, warm.duration) if part)
    return {"none": "nothing", None: NO_VALUE}.get(warm, str(warm))


def same_settings(report: Report) -> Table:
    """Return the settings that all measured cells have in common."""
    rows = [entries(n, v) for n, v in sorted(_settings(report).items()) if isinstance(v, str)]
    return Table(columns("setting", "value"), rows, "The same in all cells.")


def different_settings(report: Report) -> Table:
    """Return the settings that differ between cells."""
    names = sorted(n for n, value in _settings(report).items() if not isinstance(value, str))
    rows = [
        entries(cell.name, *(str(cell.middle.settings.get(name, NO_VALUE)) for name in names))
        for cell in report.cells
        if cell.middle
    ]
    return Table(
        columns("cell", *names), rows, "The settings in which the cells differ.", dense=True
    )


def _settings(report: Report) -> dict[str, str | None]:
    """Return setting → value; None if cells differ."""
    common: dict[str, str | None] = {}
    documents = [run.settings for run in report.runs]
    for name in {name for document in documents for name in document}:
        values = {str(document.get(name, NO_VALUE)) for document in documents}
        common[name] = values.pop() if len(values) == 1 else None
    return common


_PERCENTILES = ("p50_ms", "p90_ms", "p95_ms", "p99_ms")
# With more panels, one column for each would be too narrow.
_MAX_PANELS = 6


def percentiles(report: Report) -> list[Block]:
    """Return the response times of each cell, if the experiment compares by them."""
    panels = [p for p in report.panels.positions if report.metric(p).name in _PERCENTILES]
    cells = [cell for panel in panels for cell in report.panel_cells(panel) if cell.runs]
    if not cells:
        return []
    rows = [
        entries(
            cell.name,
            *(cell.text(name) for name in _PERCENTILES),
            cell.text("failed_ratio"),
            cell.text("dropped_iterations"),
        )
        for cell in cells
    ]
    titles = ("cell", "#p50, ms", "#p90, ms", "#p95, ms", "#p99, ms", "#failed, %", "#dropped")
    return [Table(columns(*titles), rows, "Dropped: requests that found no free virtual user.")]


def bottlenecks(report: Report) -> list[Block]:
    """Return what limited each cell that broke, of the repeat that is drawn."""
    found = [
        (cell, run.result.bottleneck)
        for cell in report.cells
        if (run := cell.middle) and run.result and run.result.bottleneck
    ]
    rows = [
        entries(cell.name, each.headline, "; ".join(each.evidence), each.remedy or NO_VALUE)
        for cell, each in found
    ]
    return [Table(columns("cell", "bottleneck", "evidence", "next"), rows)] if rows else []


def capacities(report: Report) -> list[Block]:
    """Return the capacity of each cell that searched one, with what it costs."""
    searched = [cell for cell in report.cells if cell.spread("capacity")]
    if not searched:
        return []
    names = ("capacity", "capacity_low", "capacity_high", "server_cpu_ms", "memory_peak_bytes")
    rows = [
        entries(cell.name, *(cell.text(name) for name in names), _bottleneck(cell))
        for cell in searched
    ]
    titles = ("cell", *map(_heading, names), "limited by")
    caption = (
        "CPU and memory are those of what answers requests, without its database: just below the "
        "capacity (above it if no load passed), and the most in any second there."
    )
    return [Table(columns(*titles), rows, caption)]


def _bottleneck(cell: Cell) -> str:
    """Return what limited a search, of the repeat that is drawn."""
    result = cell.middle.result if cell.middle else None
    found = result.bottleneck.headline if result and result.bottleneck else ""
    return found or (result.limited_by.short if result else NO_VALUE)


def websockets(report: Report) -> list[Block]:
    """Return the delivery of the due messages."""
    cells = [c for c in report.cells if any(result.websockets for result in c.results)]
    if not cells:
        return []
    names = (
        *("connections", "ws_expected", "ws_messages", "ws_lost", "ws_doubled", "ws_closed"),
        *("ws_delay_p50_ms", "ws_delay_p95_ms", "ws_delay_max_ms"),
    )
    rows = [
        entries(
            cell.name,
            *(cell.text(name) for name in names),
        )
        for cell in cells
    ]
    titles = columns(
        *("cell", "#held at once", "#messages due", "#came", "#lost", "#came twice"),
        *("#closed early", "#delay p50, ms", "#p95", "#most"),
    )
    return [Table(titles, rows, "Delay: from the booking's commit to the message at the client.")]


def _latency_spread(cell: Cell, name: str) -> Spread | None:
    return spread([(run.latency or {}).get(name) for run in cell.runs])


def delays(report: Report) -> list[Block]:
    """Return the actual delays of LAB_LATENCY_MS, measured before each cell with a delay."""
    names = ("database_ms", "client_ms", "new_connection_ms", "new_connection_delays")
    rows = [
        entries(
            cell.name,
            cell.middle.settings.get("LAB_LATENCY_MS", NO_VALUE) if cell.middle else NO_VALUE,
            *(median_and_range(_latency_spread(cell, name), milliseconds) for name in names),
        )
        for cell in report.cells
        if _latency_spread(cell, "new_connection_delays")
    ]
    titles = columns(
        *("cell", "#set, ms", "#to Postgres and back, ms", "#to a client, ms"),
        *("#new connection, ms", "#in delays"),
    )
    caption = "A new connection to Postgres costs several delays."
    return [Table(titles, rows, caption)] if rows else []


def memory(report: Report) -> list[Block]:
    """Return the peak memory of each row's service, over the cells of a panel."""
    if not any(cell.spread("memory_peak_bytes") for cell in report.cells):
        return []
    panels = [p for p in report.panels.positions if report.panel_cells(p)]
    panel_columns = panels if 1 < len(panels) <= _MAX_PANELS else []
    rows = [
        entries(
            row,
            report.rows.positions.get(row) or NO_VALUE,
            *(_peak([c for c in cells if report.place(c)[2] == panel]) for panel in panel_columns),
            _peak(cells),
        )
        for row, cells in _by_row(report).items()
    ]
    head = [*(f"#{panel}" for panel in panel_columns), "#most in any cell"]
    caption = (
        "MiB: the most that the answering service's processes took in any second of a load, shared "
        "pages counted once (PSS). Without Postgres, whose connections take separate memory."
    )
    return [Table(columns(report.rows.name or "cell", "what it is", *head), rows, caption)]


def _by_row(report: Report) -> dict[str, list[Cell]]:
    groups: dict[str, list[Cell]] = {row: [] for row in report.rows.positions}
    for cell in report.cells:
        groups.setdefault(report.place(cell)[0], []).append(cell)
    return {row: cells for row, cells in groups.items() if cells}


def _peak(cells: list[Cell]) -> Entry:
    peaks = [value.maximum for cell in cells if (value := cell.spread("memory_peak_bytes"))]
    return Entry(mebibytes(max(peaks, default=None)))
