"""Reports of experiments that define their own metric and layout."""

import pytest

from load_lab.experiments import matrix
from load_lab.experiments.files import parse
from load_lab.experiments.report.main_chart import comparison
from load_lab.experiments.report.published_results import groups
from load_lab.experiments.report.rows import build
from load_lab.experiments.report.sections import sections
from load_lab.experiments.report.summary import answer
from load_lab.experiments.report.writing import report_document
from load_lab.paths import EXPERIMENTS
from load_lab.results.page import markdown
from tests.support.report_samples import find_cell, load, runs

# Successes of each server with 0 ms and with 200 ms of latency.
SUCCESSES = {"sync": (400, 10), "threads": (200, 360), "async": (420, 380)}
REPORT = {
    "compare": "successes",
    "rows": ["server"],
    "panels": ["route"],
    "base": {"server": "sync"},
}
PUBLISHED = [
    {"cell": "read/0ms/sync", "label": None, "max_rps": 23.0, "successes": 3927},
    {"cell": "read/0ms/async", "label": None, "max_rps": 28.3, "successes": 3053},
    {"cell": "read/200ms/sync", "label": None, "max_rps": 0.6, "successes": 105},
    {"cell": "read/200ms/async", "label": None, "max_rps": 28.4, "successes": 4312},
]


def cells():
    pattern = find_cell(load()[1], "naive/none/detail") | {"windows": [], "limited_by": "none"}
    return [
        pattern
        | {
            "name": f"read/{latency}/{server}",
            "axes": {"route": "read", "latency": latency, "server": server},
            "outcome": "measured",
            "break_point": None,
            "successes": count,
            "max_rps": count / 100,
            "memory_peak_bytes": (n + 1) * 50 * 1024**2 + i * 1024**2,
        }
        for n, (server, counts) in enumerate(SUCCESSES.items())
        for i, (latency, count) in enumerate(zip(("0ms", "200ms"), counts, strict=True))
    ]


def header(**changes):
    names = {"route": ["read"], "latency": ["0ms", "200ms"], "server": list(SUCCESSES)}
    axes = [
        {"name": axis, "positions": [{"name": n, "title": f"the {n}"} for n in values]}
        for axis, values in names.items()
    ]
    plan = [{"name": cell["name"], "repeat": 1} for cell in cells()]
    fields = {"axes": axes, "plan": plan, "published": PUBLISHED, "report": REPORT}
    return load()[0] | fields | changes


def render(document, documents):
    report = build(document, runs(documents), [])
    all_sections = sections(report)
    pictures = {b.name: "" for s in all_sections for b in s.blocks if b.kind == "picture"}
    return markdown(report, all_sections, pictures)


@pytest.fixture(scope="module")
def text():
    return render(header(), cells())


def test_answer_compares_configured_metric_with_configured_base(text):
    assert (
        "For read, 0ms: sync gave 400 successful answers, threads 200 (0.5 ×) and async 420 "
        "(1.1 ×). From sync to the best server: read, 200ms 10 → 380 (38 ×) by async." in text
    )


def test_answer_shows_only_published_rows_of_large_tables(monkeypatch):
    monkeypatch.setattr("load_lab.experiments.report.summary._MAX_ROWS", 2)
    text = answer(build(header(), runs(cells()), []))
    assert "sync gave 400 successful answers, async 420 (1.1 ×)." in text
    assert "threads" not in text


def test_table_has_configured_rows_panels_and_series(text):
    assert "## Successful answers of every server" in text
    assert "| server | what it is | read, 0ms | read, 200ms |" in text
    assert "| async | the async | 420 | 380 |" in text
    panel = comparison(build(header(), runs(cells()), [])).panels[0]
    assert panel["title"] == "read"


def test_published_values_appear_as_in_their_source(text):
    assert "| route, latency | sync, published | sync, measured | async, published |" in text
    assert "| read, 200ms | 0.60 &amp; 105 | 0.10 &amp; 10 | 28.4 &amp; 4,312 | 3.8 &amp;" in text
    assert "As the source's own table: successes/s at most &amp; successes." in text


def test_published_and_measured_steps_are_compared_by_direction(text):
    row = "| read/200ms/async | 4,312 | 380 | 41 × | 38 × | 28.4 | 3.8 | **the same way: up** |"
    assert row in text
    assert "| read/0ms/sync | 3,927 | 400 | 1.0 × | 1.0 × | 23.0 | 4.0 | – |" in text
    start = "| read/0ms/async | 3,053 | 420 | 0.78 × | 1.1 × | 28.3 | 4.2 | **apart: theirs down, "
    assert f"{start}ours equal** |" in text


def test_memory_peak_is_reported_per_server(text):
    assert "| sync | the sync | 51 |" in text
    assert "| async | the async | 151 |" in text


def test_closed_load_has_no_break_point_and_no_limit(text):
    assert "| read/0ms/sync | measured | 1 of 1 | 1.8 | – | – |" in text


def test_base_is_configured_cell_not_first_cell():
    report = build(header(report=REPORT | {"base": {"server": "threads"}}), runs(cells()), [])
    assert answer(report).startswith("For read, 0ms: threads gave 200 successful answers, sync 400")
    assert report.base_of(report.cells[0]).name == "read/0ms/threads"


def test_panels_can_combine_several_axes():
    layout = REPORT | {"panels": ["route", "latency"], "compare": "max_rps"}
    report = build(header(report=layout), runs(cells()), [])
    assert list(report.panels.positions) == ["read, 0ms", "read, 200ms"]
    assert report.panels.positions["read, 200ms"] == "the read, the 200ms"
    assert report.place(report.cells[1]) == ("sync", "", "read, 200ms")


def test_each_panel_can_compare_different_metric():
    layout = {"rows": ["server"], "panels": ["latency"]}
    layout["compare"] = {"0ms": "successes", "200ms": "p95_ms"}
    documents = cells()
    for n, cell in enumerate(documents[::-1], start=5):
        cell.update(p50_ms=n, p90_ms=2 * n, p95_ms=3 * n, p99_ms=40 * n)
    text = render(header(report=layout), documents)
    assert "## Every server compared" in text
    assert "| 0ms, read: successful answers | 200ms, read: response time, p95 (ms) |" in text
    assert "| threads | the threads | 200 | 21 |" in text
    # For response times, the lowest value is the best.
    assert "200ms, read 27 ms (p95) → 15 (0.56 ×) by async" in text
    assert "| read/200ms/async | 5.0 | 10 | 15 | 200 |" in text
    assert "| read/0ms/async |" not in text.split("## Response times")[1].split("## ")[0]


def test_published_lines_with_other_metrics_get_separate_table():
    published = [*PUBLISHED, {"cell": "read/0ms/threads", "label": "t", "p95_ms": 3.0}]
    line_groups = groups(build(header(published=published), runs(cells()), []))
    assert [[kind.name for kind in group.kinds] for group in line_groups] == [
        ["max_rps", "successes"],
        ["p95_ms"],
    ]
    assert [group.main.name for group in line_groups] == ["successes", "p95_ms"]


def test_published_line_can_name_its_base_line():
    base = {"cell": "read/0ms/sync", "label": None, "successes": 100}
    other = {"cell": "read/200ms/async", "label": None, "successes": 400, "base": "read/0ms/sync"}
    (group,) = groups(build(header(published=[base, other]), runs(cells()), []))
    assert group.lines[1].base is group.lines[0]
    assert group.lines[1].step(group.main, "published_value") == 4


def test_every_published_line_has_a_base():
    for path in EXPERIMENTS.glob("*.toml"):
        experiment = parse(path.stem, path.read_text())
        axes = [
            {"name": a.name, "positions": [{"name": n, "title": n} for n in a.positions]}
            for a in experiment.axis
        ]
        document = {
            **{"axes": axes, "report": experiment.report.model_dump()},
            "plan": [{"name": c.name, "repeat": 1} for c in matrix.cells(experiment)],
            "published": [result.model_dump() for result in experiment.published],
        }
        lines = [line for group in groups(build(document, [], [])) for line in group.lines]
        assert [line.label for line in lines if line.base is None] == [], path.stem


def test_unmeasurable_cell_is_named_with_reason():
    documents = cells()
    state = {"state": "not measured", "error": "Python 3.6 is not here"}
    documents[0] = {
        k: documents[0][k] for k in ("name", "repeat", "axes", "title", "settings")
    } | state
    text = render(header(), documents)
    assert "Of 6 planned cells, 0 failed, 1 could not be measured here and 0 are missing." in text
    assert "| read/0ms/sync | Python 3.6 is not here |" in text
    assert "| read/0ms/sync | *not measured* | 0 of 1 | – |" in text
    document = report_document(header(), runs(documents), [], {})
    (first,) = [cell for cell in document["cells"] if cell["name"] == "read/0ms/sync"]
    assert (first["state"], first["error"]) == ("not measured", "Python 3.6 is not here")


def test_sockets_latency_and_old_stacks_have_tables():
    documents = cells()
    counts = {"connections": 1000, "messages": 70, "expected": 71, "lost": 1, "doubled": 2}
    latencies = {"delay_p50_ms": 2.5, "delay_p95_ms": 12.0, "delay_max_ms": 1300.0}
    documents[0]["websockets"] = counts | {"closed": 3} | latencies
    documents[1]["latency"] = {
        **{"database_ms": 201.2, "client_ms": 200.4},
        **{"new_connection_ms": 1402.0, "new_connection_delays": 7.0},
    }
    documents[1]["settings"] = documents[1]["settings"] | {"LAB_LATENCY_MS": "200"}
    shared = {"layer_cpus_shared_with": "the load generator"}
    documents[2]["legacy"] = {"stack": "channels-2016", "arm": "a", "django": "1.10.8"} | shared
    documents[3]["legacy"] = documents[2]["legacy"] | {"layer_cpus_shared_with": "the server"}
    text = render(header(postgres_auth="scram-sha-256"), documents)
    assert "| read/0ms/sync | 1,000 | 71 | 70 | 1 | 2 | 3 | 2.5 | 12 | 1,300 |" in text
    assert "| read/200ms/sync | 200 | 201 | 200 | 1,402 | 7.0 |" in text
    assert "| Postgres authentication | scram-sha-256 |" in text
    assert "| old stack channels-2016 | django 1.10.8 |" in text
    start = "the layer's Redis shares its CPU with"
    assert f"| {start} the load generator | {documents[2]['name']} |" in text
    assert f"{start} the server" not in text
