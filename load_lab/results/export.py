"""The metrics of a run or an experiment as CSV, Markdown or JSON."""

import csv
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from load_lab.errors import LabError
from load_lab.results.page import plain
from load_lab.results.result import METRICS, Result

Row = dict[str, Any]


def result_row(name: str, result: Result | None, **more: Any) -> Row:
    """Return one row of an export: the names, then every metric (None if it is missing)."""
    metrics = {name: metric.of(result) if result else None for name, metric in METRICS.items()}
    verdict = {"outcome": result.outcome, "limited_by": result.limited_by} if result else {}
    return {"name": name, **more, **verdict, **metrics}


def write_export(rows: Sequence[Row], form: str, path: Path) -> None:
    """Write the rows to a file; an existing file is replaced.

    Raises:
        LabError: the file can't be written.
    """
    try:
        path.write_text(_FORMATS[form](rows))
    except OSError as error:
        raise LabError(f"{path} can't be written: {error.strerror}. Name another file.") from None


def _csv(rows: Sequence[Row]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, _columns(rows))
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _markdown(rows: Sequence[Row]) -> str:
    """Return a line per metric and a column per row: there are few runs and many metrics."""
    head = ["metric", *(str(row["name"]) for row in rows)]
    lines = [head, ["---"] * len(head)]
    for column in _columns(rows)[1:]:
        values = [row.get(column) for row in rows]
        lines.append([column, *("" if value is None else f"{value}" for value in values)])
    return "".join(f"| {' | '.join(plain(field) for field in line)} |\n" for line in lines)


def _json(rows: Sequence[Row]) -> str:
    return json.dumps(list(rows), indent=2) + "\n"


def _columns(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


_FORMATS: dict[str, Callable[[Sequence[Row]], str]] = {
    "csv": _csv,
    "md": _markdown,
    "json": _json,
}
