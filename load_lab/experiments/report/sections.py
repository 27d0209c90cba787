"""The sections of the page, from top to bottom."""

from load_lab.experiments.report import composition, curves, main_chart, published_results, tables
from load_lab.experiments.report.conditions import HOW_TO_READ, conditions, definition, notices
from load_lab.experiments.report.rows import Report
from load_lab.experiments.report.summary import answer, tally
from load_lab.results.blocks import Block, Items, Paragraph, Section, Table, columns, entries, slug
from load_lab.results.formatting import NO_VALUE


def sections(report: Report) -> list[Section]:
    """Return the sections that have content, in reading order."""
    all_sections = [
        Section("The answer", "answer", [*notices(report), *_question(report)]),
        Section("Claims", "claims", [tables.claims(report)] if report.claims else []),
        Section(main_chart.title(report), "comparison", _comparison(report)),
        Section("Capacities", "capacities", tables.capacities(report)),
        *_loads(report),
        Section("Bottlenecks", "bottlenecks", tables.bottlenecks(report)),
        Section("Published and measured", "published", published_results.blocks(report)),
        Section("Response times", "times", tables.percentiles(report)),
        Section("WebSockets", "websockets", tables.websockets(report)),
        Section("Delays", "delays", tables.delays(report)),
        Section("Peak memory", "memory", tables.memory(report)),
        Section("All cells", "cells", [tables.cells(report)]),
        Section("Cells that failed", "failed", _failed(report)),
        Section("Cells that can't be measured here", "impossible", _impossible(report)),
        Section("Excluded cells", "excluded", _excluded(report)),
        Section("Conditions", "conditions", conditions(report)),
        Section("Settings", "settings", _settings(report)),
        Section("How to read this", "reading", [Items(HOW_TO_READ)]),
        Section("The experiment's definition", "definition", definition(report)),
    ]
    return [section for section in all_sections if section.blocks]


def _question(report: Report) -> list[Block]:
    question = report.header.get("question")
    source = report.header.get("source")
    return [
        *([Paragraph(str(question))] if question else []),
        Paragraph(answer(report)),
        Paragraph(tally(report)),
        *([Paragraph(f"Published: {source}")] if source else []),
    ]


def _comparison(report: Report) -> list[Block]:
    picture = main_chart.comparison(report)
    return [picture, tables.comparison(report)] if picture else []


# With more loads, CPU charts for each of them would be too much to read.
_MAX_CPU_PANELS = 6


def _loads(report: Report) -> list[Section]:
    load_sections = []
    few = len(report.panels.positions) <= _MAX_CPU_PANELS
    builders = (curves.curves, *((composition.cpu,) if few else ()), composition.cache)
    for panel, panel_title in report.panels.positions.items():
        pictures = [build(report, panel) for build in builders]
        title = (
            f"Load {panel}: {panel_title}"
            if panel_title
            else f"Load {panel}"
            if panel
            else "The load"
        )
        blocks: list[Block] = [picture for picture in pictures if picture]
        load_sections.append(Section(title, slug("load", panel), blocks))
    return load_sections


def _failed(report: Report) -> list[Block]:
    rows = [
        entries(cell.name, str(run.repeat), run.error or NO_VALUE)
        for cell in report.cells
        for run in cell.failures
    ]
    return [Table(columns("cell", "#repeat", "what happened"), rows)] if rows else []


def _impossible(report: Report) -> list[Block]:
    reasons: dict[str, list[str]] = {}
    for cell in report.cells:
        for run in cell.impossible:
            reasons.setdefault(run.error or NO_VALUE, []).append(cell.name)
    rows = [entries(", ".join(dict.fromkeys(names)), reason) for reason, names in reasons.items()]
    return [Table(columns("cells", "why"), rows)] if rows else []


def _excluded(report: Report) -> list[Block]:
    rows = [
        entries(", ".join(group["cells"]), group["because"])
        for group in report.header.get("excluded", [])
    ]
    return [Table(columns("cells", "because"), rows)] if rows else []


def _settings(report: Report) -> list[Block]:
    all_tables = [tables.different_settings(report), tables.same_settings(report)]
    return [table for table in all_tables if table.rows and len(table.columns) > 1]
