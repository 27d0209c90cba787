"""The results as a table. docs/measured/faults.md leaves out columns that are always equal."""

from collections.abc import Callable

from tests.faults.evaluation import FaultResult

COLUMNS: dict[str, Callable[[FaultResult], object]] = {
    "fault": lambda row: row.fault,
    "sent": lambda row: row.sent,
    "acknowledged": lambda row: row.acknowledged,
    "lost": lambda row: row.lost,
    "doubled": lambda row: row.doubled,
    "overlapping": lambda row: row.overlapping,
    "pages": lambda row: row.pages,
    "pages failed": lambda row: row.pages_failed,
    "stale beyond promise": lambda row: row.stale_beyond,
    "oldest": lambda row: f"{row.oldest_unmarked:.1f} s",
    "oldest marked": lambda row: f"{row.oldest_marked:.1f} s",
    "slowest page": lambda row: f"{row.slowest_page:.1f} s",
    "tries that failed": lambda row: _failures(row),
    "recovered": lambda row: f"{row.recovered_after:.1f} s",
}


def lines(rows: list[FaultResult]) -> list[str]:
    """Return the table's lines in Markdown."""
    head = [list(COLUMNS), ["---", *["--:"] * (len(COLUMNS) - 1)]]
    body = [[str(cell(row)) for cell in COLUMNS.values()] for row in rows]
    return [f"| {' | '.join(cells)} |" for cells in [*head, *body]]


def _failures(row: FaultResult) -> str:
    return ", ".join(f"{kind} × {count}" for kind, count in sorted(row.failures.items())) or "0"
