"""Names of variants, whatever they contain, in what `lab compare` writes."""

import re

import pytest
from markdown_it import MarkdownIt

from load_lab.compare.blocks import Block, CompareOptions, Session
from load_lab.compare.chart import draw
from load_lab.compare.cost import BlockLoad, Side
from load_lab.compare.page import add_page
from load_lab.compare.result import document_of, head_of
from load_lab.compare.wording import comparison, markdown
from load_lab.console import Console, step
from load_lab.settings import load_settings
from load_lab.targets.file import Variation
from load_lab.targets.subject import Variant

NAMES = (
    "pattern=a|b|c",
    "cmd=`date`",
    "[x](http://example.org)",
    "![pic](x.png)",
    "<script>alert(1)</script>",
    "a=1,\nb=2\n\n# title\n- item",
    r"under_score_ *bold* ~~gone~~ &amp; \| @{1}",
    "[/bold] [red]x",
)


def _document(name):
    side = Side(100, 0, 0, 2.0, 3.0, 5.0, 9.0, None, {(0.001, 0.01): 100.0}, {name: 2.0})
    variants = Variant(name), Variant(f"{name} 2", Variation(options={"LAB_DETAIL": "fast"}))
    options = CompareOptions(*variants, "detail", 240, 0.05)
    session = Session(options, [Block(n, side, side, swapped=False, control=False) for n in (1, 2)])
    document = document_of(
        head_of("native", load_settings(), options),
        session,
        BlockLoad("detail", 10, 20, 1000),
        60.0,
    )
    headlines = {"a": f"10/s of {name}", "b": "12/s"}
    return document | {"capacity": {"headlines": headlines}, "how": "in turns", "files": {}}


@pytest.mark.parametrize("name", NAMES)
def test_name_is_shown_unchanged_in_markdown(name):
    tokens = MarkdownIt().enable(["table", "strikethrough"]).parse(markdown(_document(name)))
    kinds = {each.type for token in tokens for each in (token, *(token.children or ()))}
    formatted = {"table_open", "bullet_list_open", "strong_open", "text"}
    assert formatted < kinds
    assert not kinds & {"link_open", "image", "html_inline", "html_block", "code_inline", "fence"}
    assert not kinds & {"em_open", "s_open", "heading_open", "softbreak"}
    texts = ["".join(t.content for t in token.children) for token in tokens if token.children]
    line = " ".join(name.split())
    assert {f"A: {line}", f"B: {line} 2", f"10/s of {line}"} <= set(texts)
    # Each row of the table has its six columns.
    assert len({row.count("|") - row.count(r"\|") for row in _rows(_document(name))}) == 1


def _rows(document):
    return [line for line in markdown(document).splitlines() if line.startswith("|")]


@pytest.mark.parametrize("name", NAMES)
def test_name_is_shown_unchanged_in_terminal_and_page(name, tmp_path, monkeypatch, capsys):
    document = _document(name)
    console = Console(width=400)
    with console.capture() as capture:
        console.print(comparison(document))
    assert name.splitlines()[0] in capture.get()
    with step(f"Preparing {name}"):
        pass
    assert name.splitlines()[-1] in capsys.readouterr().err
    monkeypatch.setenv("LAB_PROJECT", str(tmp_path))
    picture = draw(document, tmp_path / "chart")
    files = {"folder": ".", "picture": picture.name}
    add_page(document | {"files": files})
    page = (tmp_path / "report.html").read_text()
    assert "<script>alert" not in page + (tmp_path / "chart.svg").read_text()
    assert not re.search(r"<(a|img) [^>]*(example\.org|x\.png)", page)


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [(0.9, 1.1, "0.900 to 1.100"), (0.02, 1.9, "0.020 to 1.900"), (0.0, 1e11, "not known")],
)
def test_interval_that_tells_nothing_has_no_numbers(low, high, text):
    document = _document("shop")
    ratio = {"ratio": 1.0, "low": low, "high": high, "resolution": 0.1, "verdict": "can't tell"}
    document["ratios"]["p95_ms"] = ratio
    (row,) = (row for row in _rows(document) if row.startswith("| p95"))
    assert f"| {text} |" in row
