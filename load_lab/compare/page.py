"""The report of a comparison as a page, and the rows that terminal and Markdown also have."""

from collections.abc import Callable, Iterator
from typing import Any

from load_lab.paths import project
from load_lab.results import page
from load_lab.results.blocks import Image, Paragraph, Section, Table, columns, entries
from load_lab.results.formatting import NO_VALUE, mebibytes, milliseconds, percent, whole
from load_lab.results.provenance import relative, write_json

_LABELS: dict[str, tuple[str, Callable[[float | None], str]]] = {
    "cpu_ms": ("CPU per request, ms", milliseconds),
    "statements_ms": ("statements in Postgres, ms", milliseconds),
    "p50_ms": ("p50, ms", milliseconds),
    "p95_ms": ("p95, ms", milliseconds),
    "p99_ms": ("p99, ms", milliseconds),
    "memory_bytes": ("memory of the server, MiB", mebibytes),
}
_NAME_DATABASE = "In the target's file, postgres or manage names a database"
_NO_SPLIT = (
    "that takes a database or a role for each ({database}), postgres in the target's file, and "
    "pg_stat_statements there"
)
COLUMNS = ("", "A", "B", "B ÷ A", "interval (98 %)", "verdict")


def add_page(document: dict[str, Any]) -> dict[str, Any]:
    """Write report.html into the comparison's folder; return the document, which names it."""
    if "picture" not in document["files"]:
        return document
    folder = project().folder / document["files"]["folder"]
    path = folder / "report.html"
    title = f"{document['b']['name']} against {document['a']['name']}"
    path.write_text(page.html(title, folder.name, _sections(document), {}))
    added = {**document, "files": {**document["files"], "html": relative(path)}}
    write_json(folder / "result.json", added)
    return added


def _sections(document: dict[str, Any]) -> list[Section]:
    headline = document["headline"]
    caption = "The ratio of each restart with its interval, and the response times of both."
    picture = project().folder / document["files"]["picture"]
    chart = Image(picture.name, picture.with_suffix(".svg"), headline, caption)
    return [
        Section("Verdict", "verdict", [Paragraph(f"{headline}."), _ratios(document), chart]),
        Section("Blocks", "blocks", [_blocks(document)]),
        Section("Conditions", "conditions", [_table("condition", dict(facts_of(document)))]),
        Section("Settings", "settings", [_table("setting", document["settings"])]),
    ]


def _ratios(document: dict[str, Any]) -> Table:
    titles = (name if name in ("", "verdict") else f"#{name}" for name in COLUMNS)
    return Table(columns(*titles), [entries(*row) for row in rows_of(document)])


def _blocks(document: dict[str, Any]) -> Table:
    """Return what each restart measured; a control has A on both sides."""
    rows = []
    for block in document["blocks"]:
        sides = [
            text
            for side in (block["a"], block["b"])
            for text in (
                whole(side["requests"]),
                milliseconds(side["cpu_ms"]),
                milliseconds(side["p50_ms"]),
                percent((round(side["failed"]) + round(side["late"])) / side["requests"]),
            )
        ]
        name = f"{block['number']}{', A against A' if block['control'] else ''}"
        ratio = NO_VALUE if block["ratio"] is None else f"{block['ratio']:.3f}"
        rows.append(entries(name, ratio, *sides))
    names = ("requests", "CPU, ms", "p50, ms", "failed or late, %")
    titles = [f"#{side}: {name}" for side in "AB" for name in names]
    return Table(columns("block", "#B ÷ A", *titles), rows, dense=True)


def _table(title: str, values: dict[str, Any]) -> Table:
    rows = [entries(name, str(value)) for name, value in values.items()]
    return Table(columns(title, "value"), rows)


def rows_of(document: dict[str, Any]) -> Iterator[list[str]]:
    sides = document["sides"]
    for name, (label, text) in _LABELS.items():
        if name == "statements_ms" and not document.get("shared", {}).get("is_split"):
            continue
        ratio = document["ratios"][name]
        verdict = ratio["verdict"] if ratio and name in document["judged"] else ""
        yield [
            label,
            text(sides["a"][name]),
            text(sides["b"][name]),
            f"{ratio['ratio']:.3f}" if ratio else "–",
            _interval(ratio["low"], ratio["high"]) if ratio else "–",
            verdict,
        ]
    if capacity := document.get("capacity"):
        yield _capacity(capacity)
    for name in ("failed", "late"):
        shares = [_share(sides[side], name) for side in "ab"]
        yield [f"{name}, %", *shares, "", "", ""]


def _capacity(capacity: dict[str, Any]) -> list[str]:
    """Return the row of the capacities; more is better, unlike what a request costs."""
    row = ["capacity; ratio at equal CPU speed", *(capacity["headlines"][side] for side in "ab")]
    ratio = capacity.get("ratio")
    if ratio is None:
        return [*row, "–", "–", ""]
    return [*row, f"{1 / ratio['ratio']:.3f}", _interval(1 / ratio["high"], 1 / ratio["low"]), ""]


def _interval(low: float, high: float) -> str:
    # Over a factor of 100 it tells nothing.
    return f"{low:.3f} to {high:.3f}" if high < 100 * low else "not known"


def _share(side: dict[str, Any], name: str) -> str:
    return percent(side[name] / side["requests"]) if side["requests"] else "–"


def _shared(is_split: bool, cpu_ms: dict[str, float]) -> str:
    """Return what serves both variants, whose CPU time is in neither's."""
    services = ", ".join(f"{name} {milliseconds(ms)} ms" for name, ms in cpu_ms.items())
    return f"{services} of CPU time per request of both, not in the ratio; " + (
        "its statements: see the table" if is_split else f"not split: {_NO_SPLIT}"
    )


def facts_of(document: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for side in "ab":
        variant = document[side]
        commit = f" ({variant['commit'][:10]})" if variant["commit"] else ""
        yield side.upper(), f"{variant['name']}{commit}"
    yield (
        "measured",
        f"{document['scenario']}, {document['how']}, {document['rate']:g} requests/s each, "
        f"{len(document['blocks'])} restarts in {document['seconds']:.0f} s",
    )
    services = document.get("services", {})
    if services.get("counted"):
        yield "CPU time of", ", ".join(services["counted"])
    if left := services.get("not_counted"):
        yield "not counted", f"{', '.join(left)}: not seen in each block. {_NAME_DATABASE}"
    for each in document.get("unseen", ()):
        yield "not counted", each
    if shared := document.get("shared", {}).get("cpu_ms"):
        yield "serves both", _shared(document["shared"]["is_split"], shared)
    if document["control"] and not document["is_control"]:
        ratios = ", ".join(f"{ratio:.3f}" for ratio in document["control"])
        yield "A against A", f"{ratios} × the CPU per request, in the same session"
    host = document["host"]
    yield "machine", f"{host['cpus']} CPUs, steal {percent(document.get('steal', 0.0))} %"
