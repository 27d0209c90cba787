"""The published figures beside the measured ones: steps between layers, not absolute numbers."""

from typing import Any

import altair as alt

from lab.report.blocks import Block, Key, Paragraph, Picture, Table, columns, entries
from lab.report.model import Document, Report
from lab.report.style import (
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
from lab.report.words import NOTHING, percent, rate, times, whole

_KINDS = {"published": ORANGE, "measured": BLUE}
_SHAPES = ["circle", "square"]
_STEP = 20

_NOTE = (
    "The article measured on its own servers, with the load generator on another host. So compare "
    "the steps from one layer to the next; the absolute numbers say more about the hosts."
)


def published(report: Report) -> list[Block]:
    """The table and the picture; empty when the experiment names no published figures."""
    rows = [_row(report, figure) for figure in report.header.get("published", [])]
    if not rows:
        return []
    _add_steps(rows)
    found: list[Block] = [Paragraph(_NOTE), _table(rows)]
    picture = _picture(rows)
    return [*found, picture] if picture else found


def _row(report: Report, figure: Document) -> dict[str, Any]:
    cell = report.cell(figure["cell"])
    measured = {
        name: cell.median(name) if cell else None for name in ("rps", "p95_ms", "failed_ratio")
    }
    return {"label": figure["label"], "published": figure, "measured": measured}


def _add_steps(rows: list[dict[str, Any]]) -> None:
    """How many times the first row's requests per second."""
    for kind in _KINDS:
        first = rows[0][kind].get("rps")
        for row in rows:
            own = row[kind].get("rps")
            row[f"{kind} step"] = own / first if own and first else None


def _table(rows: list[dict[str, Any]]) -> Table:
    titles = columns(
        "what",
        "#published, requests/s",
        "#measured, requests/s",
        "#published step",
        "#measured step",
        "#published p95, ms",
        "#measured p95, ms",
        "#published failed, %",
        "#measured failed, %",
    )
    return Table(
        titles,
        [entries(row["label"], *_figures(row)) for row in rows],
        "Steps are times the requests/s of the first line. Requests/s count failed answers too, as "
        "the article's do.",
    )


def _figures(row: dict[str, Any]) -> list[str]:
    article, own = row["published"], row["measured"]
    return [
        rate(article.get("rps")),
        rate(own["rps"]),
        times(row["published step"]),
        times(row["measured step"]),
        whole(article.get("p95_ms")),
        whole(own["p95_ms"]),
        percent(article.get("failed_ratio")),
        percent(own["failed_ratio"]),
    ]


def _picture(rows: list[dict[str, Any]]) -> Picture | None:
    if not any(row["measured"]["rps"] for row in rows):
        return None
    labels = [row["label"] for row in rows]
    rates = [_mark(row, kind, row[kind].get("rps"), rate) for row in rows for kind in _KINDS]
    steps = [_mark(row, kind, row[f"{kind} step"], times) for row in rows for kind in _KINDS]
    return Picture(
        "published",
        title="Published and measured",
        alt="Published and measured requests per second and their steps over the first line",
        caption="Logarithmic axes. Compare the steps; the absolute numbers are of other hosts.",
        panels=[
            _panel(rates, labels, "requests per second", "requests/s"),
            _panel(steps, labels, f"step over “{labels[0]}”", "times as many requests/s"),
        ],
        legend=[Key("published", ORANGE, "circle"), Key("measured", BLUE, "square")],
    )


def _mark(row: dict[str, Any], kind: str, value: float | None, form: Any) -> dict[str, Any]:
    text = NOTHING if value is None else form(value)
    return {"label": row["label"], "kind": kind, "value": significant(value), "text": text}


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
        .axis(grid=True, tickBand="extent", domain=False, ticks=False, labelLimit=130),
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
