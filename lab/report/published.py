"""The published figures beside the measured ones: steps between cells, not absolute numbers."""

from typing import Any

from lab.analysis.formatting import NOTHING, times
from lab.report import published_picture
from lab.report.blocks import Block, Entry, Paragraph, Table, columns, entries
from lab.report.model import Report
from lab.report.published_lines import Group, Kind, Line, groups

_NOTE = (
    "The source measured on its own machines. So compare the steps from one {row} to the next; the "
    "absolute numbers say more about the machines."
)
# What the measured ones are; what a source counted is not known of every source.
_COUNTED = {
    "rps": " Measured requests/s count failed answers too, over the load with its last answers.",
    "answers_per_second": (
        " Measured answers/s are those that succeeded, over the planned length of the load."
    ),
}
# Nearer to each other than this, two figures are called equal.
_EQUAL = 1.1


def published(report: Report) -> list[Block]:
    """Tables and pictures; empty when the experiment names no published figures."""
    there = groups(report)
    if not there:
        return []
    found: list[Block] = [Paragraph(_NOTE.format(row=report.rows.name or "cell"))]
    for number, group in enumerate(there, start=1):
        found += [*_as_published(report, group), _table(group)]
        name = "published" if number == 1 else f"published-{number}"
        picture = published_picture.picture(name, group)
        found += [picture] if picture else []
    return found


def _table(group: Group) -> Table:
    main, others = group.main, [kind for kind in group.kinds if kind is not group.main]
    titles = [
        "what",
        *(f"#published, {main.title}", f"#measured, {main.title}"),
        *("#published step", "#measured step"),
        *(f"#{whose} {kind.title}" for kind in others for whose in ("published", "measured")),
        "the steps go",
    ]
    return Table(columns(*titles), [_line(line, group) for line in group.lines], _caption(group))


def _caption(group: Group) -> str:
    first = group.lines[0]
    over = "first line" if all(line.base is first for line in group.lines) else "cell compared with"
    counted = _COUNTED.get(group.main.name, "")
    return (
        f"Steps are times the {group.main.title} of the {over}. They go the same way when both are "
        f"up, both down, or both within 10 %.{counted}"
    )


def _line(line: Line, group: Group) -> tuple[Entry, ...]:
    main = group.main
    return entries(
        line.label,
        main.form(line.theirs(main)),
        main.form(line.ours(main)),
        times(line.step(main, "theirs")),
        times(line.step(main, "ours")),
        *(
            kind.form(found)
            for kind in group.kinds
            if kind is not main
            for found in (line.theirs(kind), line.ours(kind))
        ),
        _direction(line, main),
    )


def _direction(line: Line, main: Kind) -> Entry:
    theirs, ours = line.step(main, "theirs"), line.step(main, "ours")
    if theirs is None or ours is None or line.base is line:
        return Entry(NOTHING)
    if _way(theirs) == _way(ours):
        return Entry(f"the same way: {_way(theirs)}", "good")
    return Entry(f"apart: theirs {_way(theirs)}, ours {_way(ours)}", "bad")


def _way(step: float) -> str:
    return "up" if step > _EQUAL else "down" if step < 1 / _EQUAL else "equal"


def _as_published(report: Report, group: Group) -> list[Block]:
    """The source's own table: a line per load, a column per row, its figures joined by &."""
    places: dict[tuple[str, str], dict[str, Line]] = {}
    for line in group.lines:
        if line.cell:
            row, series, panel = report.place(line.cell)
            places.setdefault((panel, series), {})[row] = line
    rows = [r for r in report.rows.positions if any(r in lines for lines in places.values())]
    if len(places) < 2 or len(rows) < 2:
        return []
    head = [f"#{row}, {whose}" for row in rows for whose in ("published", "measured")]
    names = " & ".join(kind.short for kind in group.kinds)
    table = Table(
        columns(", ".join(n for n in (report.panels.name, report.series.name) if n), *head),
        [
            entries(", ".join(n for n in place if n), *_fields(lines, rows, group))
            for place, lines in places.items()
        ],
        f"As the source's own table: {names}.",
    )
    return [table]


def _fields(lines: dict[str, Line], rows: list[str], group: Group) -> list[str]:
    found: list[str] = []
    for row in rows:
        line: Any = lines.get(row)
        for whose in ("theirs", "ours"):
            values = [kind.form(getattr(line, whose)(kind)) for kind in group.kinds] if line else []
            known = set(values) - {NOTHING}
            found.append(" & ".join(values) if known else NOTHING)
    return found
