"""The report of a single run as a page and Markdown: verdict, chart, metrics and conditions."""

from pathlib import Path
from typing import Any

from load_lab.paths import project
from load_lab.results import page
from load_lab.results.blocks import Block, Image, Paragraph, Section, Table, columns, entries
from load_lab.results.formatting import NO_VALUE, milliseconds, percent, whole
from load_lab.results.provenance import relative
from load_lab.results.result import METRICS
from load_lab.run.single_run import SingleRun


def write_run_page(run: SingleRun) -> dict[str, str]:
    """Write report.html and report.md into the run's folder; returns the files' names."""
    folder = project().folder / run.files["folder"]
    title = f"{run.result.profile} of {run.result.scenario}"
    html, markdown = folder / "report.html", folder / "report.md"
    sections = _sections(run)
    html.write_text(page.html(title, run.result.testid, sections, {}))
    markdown.write_text(page.markdown(title, sections, {}))
    return {**run.files, "html": relative(html), "markdown": relative(markdown)}


def _sections(run: SingleRun) -> list[Section]:
    return [
        Section("Verdict", "verdict", [Paragraph(run.result.verdict), *_chart(run)]),
        *_bottleneck(run),
        Section("Metrics", "metrics", [_metrics(run)]),
        *_generators(run),
        Section("Conditions", "conditions", [_table("condition", conditions(run))]),
        Section("Settings", "settings", [_table("setting", run.settings.model_dump())]),
    ]


def _bottleneck(run: SingleRun) -> list[Section]:
    """Return what limited the run, and what else requests waited for or used."""
    found = run.result.bottleneck
    if found is None:
        return []
    rows = [entries(one.name, percent(one.share), one.evidence) for one in found.candidates]
    table = Table(columns("cause", "#share of a request, %", "evidence"), rows)
    next_step = [f"Next: {found.remedy}."] if found.remedy else []
    texts = [f"{found.headline}.", *(f"{line}." for line in found.evidence), *next_step]
    blocks: list[Block] = [Paragraph(" ".join(texts)), *([table] if rows else [])]
    if "bottleneck" in run.files:
        picture = Path(run.files["bottleneck"])
        caption = "Where one request spends its time, and what fills up over the load."
        path = project().folder / picture.with_suffix(".svg")
        blocks.append(Image(picture.name, path, found.headline, caption))
    return [Section("Bottleneck", "bottleneck", blocks)]


def _chart(run: SingleRun) -> list[Block]:
    if "picture" not in run.files:
        return []
    picture = Path(run.files["picture"])
    caption = "Response time, rates and errors in windows of 5 s."
    return [
        Image(
            picture.name,
            project().folder / picture.with_suffix(".svg"),
            run.result.verdict,
            caption,
        )
    ]


def _metrics(run: SingleRun) -> Table:
    rows = [
        entries(metric.label, metric.form(value), metric.unit)
        for metric in METRICS.values()
        if (value := metric.of(run.result)) is not None
    ]
    return Table(columns("metric", "#value", "unit"), rows)


def _generators(run: SingleRun) -> list[Section]:
    """Return what each of several generators did; nothing for a single one."""
    rows = [
        entries(
            one.name,
            whole(one.requests),
            NO_VALUE if one.started_after is None else milliseconds(one.started_after * 1000),
            NO_VALUE if one.cpu is None else f"{one.cpu:.2f}",
        )
        for one in run.result.generators
    ]
    table = Table(columns("generator", "#requests", "#started after, ms", "#CPUs used"), rows)
    return [Section("Generators", "generators", [table])] if rows else []


def conditions(run: SingleRun) -> dict[str, Any]:
    """Return the machine, the limits and the delays of a run."""
    limits = run.bounds
    return {
        "started (UTC)": run.result.started,
        "limit on p95": f"{limits.p95_ms:.0f} ms",
        "limit on errors": f"{limits.error_ratio:.0%}",
        "limit on achieved": f"{limits.achieved_ratio:.0%} of the due requests",
        **run.host,
        **(run.latency or {}),
    }


def _table(title: str, values: dict[str, Any]) -> Table:
    rows = [
        entries(name, NO_VALUE if value is None else str(value)) for name, value in values.items()
    ]
    return Table(columns(title, "value"), rows)
