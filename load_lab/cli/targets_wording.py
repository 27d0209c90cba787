"""Targets and mixes for the terminal."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

# More rows would hide the summary; the file has them all.
_MOST_ROWS = 30
# Reasons of a large API's hundreds of operations that write: counted, not listed.
_WRITES = {f"not safe: {method}" for method in ("POST", "PUT", "PATCH", "DELETE")}


def added(document: Mapping[str, Any]) -> RenderableType:
    name = document["target"]
    return f"{name} answers. Its file: {escape(document['file'])}. Next: lab mix make {name}"


def mix(document: Mapping[str, Any]) -> RenderableType:
    """Return the operations, what is left out and why, and the coverage."""
    count = len(document["operations"])
    has_writes = any(f"not safe: {each['method']}" in _WRITES for each in document["operations"])
    kind = "operations" if has_writes else "operations that read"
    reads = [each for each in document["left_out"] if each["reason"] not in _WRITES]
    writes = len(document["left_out"]) - len(reads)
    parts: list[RenderableType] = [
        _operations(document["operations"]),
        *(_left_out(reads) if reads else ()),
        *([f"Not sent, because they write: {writes} operations."] if writes else []),
        f"[bold]{count} of {count + len(reads)} {kind}[/bold] are in "
        f"{escape(document['file'])}. "
        f"Next: lab k6 breakpoint --target {escape(document['target'])}",
    ]
    return Group(*parts)


def plan(document: Mapping[str, Any]) -> RenderableType:
    """Return what an exploration sends: every operation, since the user decides about each."""
    reads = [each for each in document["left_out"] if each["reason"] not in _WRITES]
    writes = len(document["left_out"]) - len(reads)
    names = document["operations"]
    parts: list[RenderableType] = [
        f"[bold]{len(names)} operations would be sent[/bold] to {escape(document['target'])}, from "
        f"{escape(document['source'])}:",
        *(f"  {escape(name)}" for name in names),
        *(_left_out(reads) if reads else ()),
        *([f"Not sent, because they write: {writes} operations."] if writes else []),
    ]
    return Group(*parts)


def _operations(operations: list[Mapping[str, Any]]) -> Table:
    table = _table("operations", "operation", "addresses", "weight", "status")
    for each in operations[:_MOST_ROWS]:
        numbers = (each["addresses"], each["weight"], each["expect"])
        table.add_row(escape(each["name"]), *(f"{number:g}" for number in numbers))
    return _with_rest(table, operations)


def _left_out(left_out: list[Mapping[str, Any]]) -> Iterator[Table]:
    """Yield each kind of reason with its count, then the operations."""
    kinds = Counter(_kind(each["reason"]) for each in left_out)
    if len(left_out) > 1:
        reasons = _table("left out, by reason", "operations", "reason")
        for kind, count in kinds.most_common():
            reasons.add_row(str(count), escape(kind))
        yield reasons
    table = _table("left out", "operation", "status", "reason")
    for each in left_out[:_MOST_ROWS]:
        status = "" if each["status"] is None else str(each["status"])
        table.add_row(escape(each["name"]), status, escape(each["reason"]))
    yield _with_rest(table, left_out)


def _kind(reason: str) -> str:
    """Return a reason without what belongs to one operation: its address, values and numbers."""
    without_address = re.sub(r"^(/|https?:)\S* ", "", reason)
    return re.split(r" for |: | \(|; ", without_address, maxsplit=1)[0]


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _with_rest(table: Table, rows: list[Mapping[str, Any]]) -> Table:
    if len(rows) > _MOST_ROWS:
        table.caption = f"and {len(rows) - _MOST_ROWS} more"
    return table
