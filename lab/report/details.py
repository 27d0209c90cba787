"""Tables that only some experiments have: response times, WebSockets, delays, memory."""

from lab.analysis.formatting import (
    NOTHING,
    Spread,
    mebibytes,
    percent,
    ranged,
    spread,
    whole,
)
from lab.report.blocks import Block, Entry, Table, columns, entries
from lab.report.figures import milliseconds
from lab.report.model import Cell, Report

_PERCENTILES = ("p50_ms", "p90_ms", "p95_ms", "p99_ms")
# With more panels a column for each would be too narrow to read.
_MOST_PANELS = 6


def percentiles(report: Report) -> list[Block]:
    """The response times of each cell, where the experiment compares by them."""
    panels = [p for p in report.panels.positions if report.figure(p).name in _PERCENTILES]
    cells = [cell for panel in panels for cell in report.of_panel(panel) if cell.runs]
    if not cells:
        return []
    rows = [
        entries(
            cell.name,
            *(ranged(cell.figure(name), milliseconds) for name in _PERCENTILES),
            ranged(cell.figure("failed_ratio"), percent),
            ranged(cell.figure("dropped_iterations"), whole),
        )
        for cell in cells
    ]
    titles = ("cell", "#p50, ms", "#p90, ms", "#p95, ms", "#p99, ms", "#failed, %", "#dropped")
    return [Table(columns(*titles), rows, "Dropped: requests that found no free virtual user.")]


def websockets(report: Report) -> list[Block]:
    """What became of the messages that were due."""
    cells = [c for c in report.cells if any(run.get("websockets") for run in c.runs)]
    if not cells:
        return []
    names = ("connections", "expected", "messages", "lost", "doubled", "closed")
    delays = ("delay_p50_ms", "delay_p95_ms", "delay_max_ms")
    rows = [
        entries(
            cell.name,
            *(ranged(_of(cell, "websockets", name), whole) for name in names),
            *(ranged(_of(cell, "websockets", name), milliseconds) for name in delays),
        )
        for cell in cells
    ]
    titles = columns(
        *("cell", "#held at once", "#messages due", "#came", "#lost", "#came twice"),
        *("#closed early", "#delay p50, ms", "#p95", "#most"),
    )
    return [Table(titles, rows, "Delay: from the booking's commit to the message at the client.")]


def _of(cell: Cell, what: str, name: str) -> Spread | None:
    return spread([(run.get(what) or {}).get(name) for run in cell.runs])


def delays(report: Report) -> list[Block]:
    """What LAB_LATENCY_MS came to, measured before each cell that has one."""
    names = ("database_ms", "client_ms", "new_connection_ms", "new_connection_delays")
    rows = [
        entries(
            cell.name,
            str((cell.middle or {}).get("settings", {}).get("LAB_LATENCY_MS", NOTHING)),
            *(ranged(_of(cell, "latency", name), milliseconds) for name in names),
        )
        for cell in report.cells
        if _of(cell, "latency", "new_connection_delays")
    ]
    titles = columns(
        *("cell", "#set, ms", "#to Postgres and back, ms", "#to a client, ms"),
        *("#new connection, ms", "#in delays"),
    )
    caption = "A new connection to Postgres costs several delays."
    return [Table(titles, rows, caption)] if rows else []


def memory(report: Report) -> list[Block]:
    """The most that each row's service took, over the cells of a panel."""
    if not any(cell.figure("memory_peak_bytes") for cell in report.cells):
        return []
    panels = [p for p in report.panels.positions if report.of_panel(p)]
    shown = panels if 1 < len(panels) <= _MOST_PANELS else []
    rows = [
        entries(
            row,
            report.rows.positions.get(row) or NOTHING,
            *(_peak([c for c in cells if report.place(c)[2] == panel]) for panel in shown),
            _peak(cells),
        )
        for row, cells in _by_row(report).items()
    ]
    head = [*(f"#{panel}" for panel in shown), "#most in any cell"]
    caption = (
        "MiB: the most that the answering service's processes took in any second of a load, shared "
        "pages counted once (PSS). Without Postgres, whose connections cost memory of their own."
    )
    return [Table(columns(report.rows.name or "cell", "what it is", *head), rows, caption)]


def _by_row(report: Report) -> dict[str, list[Cell]]:
    found: dict[str, list[Cell]] = {row: [] for row in report.rows.positions}
    for cell in report.cells:
        found.setdefault(report.place(cell)[0], []).append(cell)
    return {row: cells for row, cells in found.items() if cells}


def _peak(cells: list[Cell]) -> Entry:
    peaks = [found.most for cell in cells if (found := cell.figure("memory_peak_bytes"))]
    return Entry(mebibytes(max(peaks, default=None)))
