"""Published and measured figures, and their steps, in one picture."""

from collections.abc import Callable
from typing import Any

import altair as alt

from lab.analysis.formatting import NOTHING, times
from lab.charts.style import (
    BLUE,
    ORANGE,
    chart_of,
    log_domain,
    log_scale,
    plain_axis,
    significant,
    spec_of,
    wide,
)
from lab.report.blocks import Key, Picture
from lab.report.published_lines import Group, Line

_KINDS = {"published": ORANGE, "measured": BLUE}
_WHOSE = {"published": "theirs", "measured": "ours"}
_SHAPES = ["circle", "square"]
_STEP = 20

_Form = Callable[[float | None], str]


def picture(name: str, group: Group) -> Picture | None:
    """None where nothing of it was measured."""
    main, lines = group.main, group.lines
    if not any(line.ours(main) for line in lines):
        return None
    values = [
        _mark(line, kind, getattr(line, whose)(main), main.form)
        for line in lines
        for kind, whose in _WHOSE.items()
    ]
    steps = [
        _mark(line, kind, line.step(main, whose), times)
        for line in lines
        for kind, whose in _WHOSE.items()
    ]
    labels = [line.label for line in lines]
    step_title = f"step over “{_base(lines)}”"
    return Picture(
        name,
        title="Published and measured",
        alt=f"Published and measured {main.title} and their steps",
        caption="Logarithmic axes. Compare the steps; the absolute numbers are of other hosts.",
        panels=[
            _panel(values, labels, main.title, main.title),
            _panel(steps, labels, step_title, f"times as many {main.title}"),
        ],
        legend=[Key("published", ORANGE, "circle"), Key("measured", BLUE, "square")],
    )


def _base(lines: list[Line]) -> str:
    """What the steps begin at: one line, or one of each kind."""
    bases = {line.base.label for line in lines if line.base}
    return bases.pop() if len(bases) == 1 else "the cell compared with"


def _mark(line: Line, kind: str, value: float | None, form: _Form) -> dict[str, Any]:
    text = NOTHING if value is None else form(value)
    return {"label": line.label, "kind": kind, "value": significant(value), "text": text}


def _panel(rows: list[dict[str, Any]], labels: list[str], title: str, x_title: str) -> Any:
    known = [row for row in rows if row["value"]]
    values = [row["value"] for row in known]
    log = wide(values, 8)
    domain = log_domain([*values, max(values) * 3]) if log else (0.0, max(values, default=1) * 1.25)
    scale = log_scale(domain) if log else alt.Scale(domain=list(domain), nice=False)
    kinds = alt.Scale(domain=list(_KINDS), range=list(_KINDS.values()))
    base = chart_of(known).encode(
        x=alt.X("value:Q", scale=scale, axis=plain_axis(x_title, domain if log else None)),
        y=alt.Y("label:N", sort=labels, scale=alt.Scale(domain=labels, paddingInner=0.25))
        .title(None)
        .axis(grid=True, tickBand="extent", domain=False, ticks=False, labelLimit=200),
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
