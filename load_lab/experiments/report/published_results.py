"""Published and measured results: compares steps between cells, not absolute numbers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import altair as alt

from load_lab.experiments.report.rows import Cell, Document, Report
from load_lab.results.blocks import Block, Entry, Key, Paragraph, Picture, Table, columns, entries
from load_lab.results.chart_style import (
    BLUE,
    ORANGE,
    chart_of,
    log_domain,
    log_scale,
    needs_log_axis,
    plain_axis,
    significant,
    spec_of,
)
from load_lab.results.formatting import NO_VALUE, milliseconds, percent, rate, times, whole


@dataclass(frozen=True)
class Kind:
    """A published metric: its column's title, and its format."""

    name: str
    title: str
    short: str
    form: Callable[[float | None], str]


KINDS = (
    Kind("max_rps", "successes/s at most", "successes/s at most", rate),
    Kind("successes", "successes", "successes", whole),
    Kind("answers_per_second", "answers/s", "answers/s", rate),
    Kind("rps", "requests/s", "requests/s", rate),
    Kind("p50_ms", "p50, ms", "p50", milliseconds),
    Kind("p90_ms", "p90, ms", "p90", milliseconds),
    Kind("p95_ms", "p95, ms", "p95", milliseconds),
    Kind("p99_ms", "p99, ms", "p99", milliseconds),
    Kind("failed_ratio", "failed, %", "failed", percent),
)


@dataclass(frozen=True)
class Group:
    """Published lines with the same metrics. `main` is the metric whose steps are compared."""

    kinds: tuple[Kind, ...]
    main: Kind
    lines: list["Line"]


@dataclass
class Line:
    """A published cell and the measured one; `base` is the line with which its steps start."""

    label: str
    published: Document
    cell: Cell | None
    base: "Line | None" = None

    def published_value(self, kind: Kind) -> float | None:
        value = self.published.get(kind.name)
        return None if value is None else float(value)

    def measured_value(self, kind: Kind) -> float | None:
        return self.cell.median(kind.name) if self.cell else None

    def measured_step(self, kind: Kind) -> str:
        """Return the ratio of the measured values, with its error."""
        base = self.base.cell if self.base else None
        if self.base is self:
            return times(self.step(kind, "measured_value"))
        ratio = self.cell.ratio_to(base, kind.name) if self.cell and base else None
        return ratio.text if ratio else NO_VALUE

    def step(self, kind: Kind, method: str) -> float | None:
        """Return the ratio to the base's value, by `published_value` or `measured_value`."""
        value = getattr(self, method)(kind)
        base_value = getattr(self.base, method)(kind) if self.base else None
        return value / base_value if value is not None and base_value else None


_NOTE = (
    "The source measured on its own machines. So compare the steps from one {row} to the next; the "
    "absolute numbers say more about the machines."
)
# The meaning of the measured metrics; sources do not always define theirs.
_METRIC_NOTES = {
    "rps": " Measured requests/s count failed answers too, over the load with its last answers.",
    "answers_per_second": (
        " Measured answers/s are those that succeeded, over the planned length of the load."
    ),
}
# Two values whose ratio is smaller than this are called equal.
_EQUAL_RATIO = 1.1


def blocks(report: Report) -> list[Block]:
    """Return tables and pictures; empty if the experiment has no published results."""
    published_groups = groups(report)
    if not published_groups:
        return []
    result: list[Block] = [Paragraph(_NOTE.format(row=report.rows.name or "cell"))]
    for number, group in enumerate(published_groups, start=1):
        result += [*_source_table(report, group), _table(group)]
        name = "published" if number == 1 else f"published-{number}"
        result += [chart] if (chart := picture(name, group)) else []
    return result


def _table(group: Group) -> Table:
    main, others = group.main, [kind for kind in group.kinds if kind is not group.main]
    titles = [
        "what",
        *(f"#published, {main.title}", f"#measured, {main.title}"),
        *("#published step", "#measured step"),
        *(f"#{side} {kind.title}" for kind in others for side in ("published", "measured")),
        "the steps go",
    ]
    return Table(columns(*titles), [_line(line, group) for line in group.lines], _caption(group))


def _caption(group: Group) -> str:
    first = group.lines[0]
    base = "first line" if all(line.base is first for line in group.lines) else "cell compared with"
    note = _METRIC_NOTES.get(group.main.name, "")
    return (
        f"Steps are times the {group.main.title} of the {base}. They go the same way when both are "
        f"up, both down, or both within 10 %.{note}"
    )


def _line(line: Line, group: Group) -> tuple[Entry, ...]:
    main = group.main
    return entries(
        line.label,
        main.form(line.published_value(main)),
        main.form(line.measured_value(main)),
        times(line.step(main, "published_value")),
        line.measured_step(main),
        *(
            kind.form(value)
            for kind in group.kinds
            if kind is not main
            for value in (line.published_value(kind), line.measured_value(kind))
        ),
        _direction(line, main),
    )


def _direction(line: Line, main: Kind) -> Entry:
    published, measured = line.step(main, "published_value"), line.step(main, "measured_value")
    if published is None or measured is None or line.base is line:
        return Entry(NO_VALUE)
    if _trend(published) == _trend(measured):
        return Entry(f"the same way: {_trend(published)}", "good")
    return Entry(f"apart: theirs {_trend(published)}, ours {_trend(measured)}", "bad")


def _trend(step: float) -> str:
    return "up" if step > _EQUAL_RATIO else "down" if step < 1 / _EQUAL_RATIO else "equal"


def _source_table(report: Report, group: Group) -> list[Block]:
    """Return the source's table: a line per load, a column per row, its metrics joined by &."""
    places: dict[tuple[str, str], dict[str, Line]] = {}
    for line in group.lines:
        if line.cell:
            row, series, panel = report.place(line.cell)
            places.setdefault((panel, series), {})[row] = line
    rows = [r for r in report.rows.positions if any(r in lines for lines in places.values())]
    if len(places) < 2 or len(rows) < 2:
        return []
    head = [f"#{row}, {side}" for row in rows for side in ("published", "measured")]
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
    fields: list[str] = []
    for row in rows:
        line: Any = lines.get(row)
        for method in ("published_value", "measured_value"):
            values = (
                [kind.form(getattr(line, method)(kind)) for kind in group.kinds] if line else []
            )
            texts = set(values) - {NO_VALUE}
            fields.append(" & ".join(values) if texts else NO_VALUE)
    return fields


def groups(report: Report) -> list[Group]:
    """Return the published lines, grouped by their metrics."""
    lines_by_kinds: dict[tuple[Kind, ...], list[Line]] = {}
    for result in report.header.get("published", []):
        kinds = tuple(kind for kind in KINDS if result.get(kind.name) is not None)
        line = Line(result.get("label") or result["cell"], result, report.cell(result["cell"]))
        lines_by_kinds.setdefault(kinds, []).append(line)
    for lines in lines_by_kinds.values():
        _set_bases(report, lines)
    return [
        Group(kinds, _main_kind(report, kinds, lines), lines)
        for kinds, lines in lines_by_kinds.items()
    ]


def _set_bases(report: Report, lines: list[Line]) -> None:
    """Set the base of each line: the file's, for this line or for all, otherwise the first line."""
    by_cell = {line.cell.name: line for line in lines if line.cell}
    has_base = bool((report.header.get("report") or {}).get("base"))
    for line in lines:
        line_base = line.published.get("base")
        base = report.base_of(line.cell) if line.cell and has_base else None
        name = line_base or (base.name if base else None)
        line.base = by_cell.get(name or "") if line_base or has_base else lines[0]


def _main_kind(report: Report, kinds: tuple[Kind, ...], lines: list[Line]) -> Kind:
    """Return the compared metric if the source has it, otherwise requests/s or the first."""
    metrics = [report.metric(report.place(line.cell)[2]).name for line in lines if line.cell]
    names = [*metrics[:1], "rps"]
    return next((kind for name in names for kind in kinds if kind.name == name), kinds[0])


_KINDS = {"published": ORANGE, "measured": BLUE}
_METHODS = {"published": "published_value", "measured": "measured_value"}
_SHAPES = ["circle", "square"]
_STEP = 20

_Form = Callable[[float | None], str]


def picture(name: str, group: Group) -> Picture | None:
    """Return the picture of a group; None without measurements."""
    main, lines = group.main, group.lines
    if not any(line.measured_value(main) for line in lines):
        return None
    values = [
        _mark(line, kind, getattr(line, method)(main), main.form)
        for line in lines
        for kind, method in _METHODS.items()
    ]
    steps = [
        _mark(line, kind, line.step(main, method), times)
        for line in lines
        for kind, method in _METHODS.items()
    ]
    labels = [line.label for line in lines]
    step_title = f"step over “{_base(lines)}”"
    return Picture(
        name,
        title="Published and measured",
        alt=f"Published and measured {main.title} and their steps",
        caption="Compare the steps; the absolute numbers are of other hosts.",
        panels=[
            _panel(values, labels, main.title, main.title),
            _panel(steps, labels, step_title, f"times as many {main.title}"),
        ],
        legend=[Key("published", ORANGE, "circle"), Key("measured", BLUE, "square")],
    )


def _base(lines: list[Line]) -> str:
    """Return the name of the steps' base: one line, or several."""
    bases = {line.base.label for line in lines if line.base}
    return bases.pop() if len(bases) == 1 else "the cell compared with"


def _mark(line: Line, kind: str, value: float | None, form: _Form) -> dict[str, Any]:
    text = NO_VALUE if value is None else form(value)
    return {"label": line.label, "kind": kind, "value": significant(value), "text": text}


def _panel(rows: list[dict[str, Any]], labels: list[str], title: str, x_title: str) -> Any:
    valid = [row for row in rows if row["value"]]
    values = [row["value"] for row in valid]
    log = needs_log_axis(values, 8)
    domain = log_domain([*values, max(values) * 3]) if log else (0.0, max(values, default=1) * 1.25)
    scale = log_scale(domain) if log else alt.Scale(domain=list(domain), nice=False)
    kinds = alt.Scale(domain=list(_KINDS), range=list(_KINDS.values()))
    base = chart_of(valid).encode(
        x=alt.X("value:Q", scale=scale).axis(
            plain_axis(f"{x_title} (logarithmic)", domain) if log else plain_axis(x_title)
        ),
        y=alt.Y("label:N", sort=labels, scale=alt.Scale(domain=labels, paddingInner=0.25))
        .title(None)
        .axis(grid=True, tickBand="extent", domain=False, ticks=False),
        yOffset=alt.YOffset("kind:N", scale=alt.Scale(domain=list(_KINDS))),
        tooltip=["label:N", "kind:N", alt.Tooltip("text:N", title=x_title)],
    )
    marks = base.mark_point(filled=True, size=90, opacity=1).encode(
        color=alt.Color("kind:N", scale=kinds),
        shape=alt.Shape("kind:N", scale=alt.Scale(domain=list(_KINDS), range=_SHAPES)),
    )
    texts = base.mark_text(align="left", baseline="middle", dx=9).encode(text="text:N")
    chart = alt.layer(marks, texts).properties(title=title)
    return spec_of(chart.properties(height=2 * _STEP * len(labels) + 10))
