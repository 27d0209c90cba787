"""The report in a real browser: headless Chromium, from a file."""

import pytest

from load_lab.experiments.report.writing import write_report
from load_lab.stack.native.program_paths import browser_env, find_browser
from tests.support.browser import browser
from tests.support.missing import missing
from tests.support.report_samples import CLAIMS, ladder, load, runs

pytestmark = pytest.mark.full

# The id of each chart, its drawn size and its number of marks.
CHARTS = """
[...document.querySelectorAll('.chart')].map(chart => {
  const box = chart.querySelector('svg')?.getBoundingClientRect();
  const marks = chart.querySelectorAll('svg path, svg line, svg text').length;
  return {id: chart.id, width: box?.width ?? 0, height: box?.height ?? 0, marks};
})
"""


@pytest.fixture(scope="module")
def page():
    program = find_browser()
    if program is None:
        missing("No Chromium on the PATH, and none unpacked: `make test-full` does by apt.")
    with browser(program, browser_env(program)) as chromium_page:
        yield chromium_page


def _write(header, cells, folder):
    """Write a report and return the path of its page."""
    return write_report(header, runs(cells), CLAIMS, folder)["html"]


@pytest.fixture(scope="module", params=["small", "ladder"])
def report(request, tmp_path_factory):
    if request.param == "small":
        return request.getfixturevalue("report_files")[1]["html"]
    return _write(*ladder(), tmp_path_factory.mktemp("report"))


@pytest.mark.parametrize("width", [400, 1280])
def test_every_chart_is_drawn_without_horizontal_scrolling(page, report, width):
    page.open(report, width)
    charts = page.evaluate(CHARTS)
    assert len(charts) >= 8
    for chart in charts:
        assert 200 < chart["width"] <= width, chart
        assert chart["height"] > 30, chart
        assert chart["marks"] > 5, chart
    assert page.evaluate("document.documentElement.scrollWidth") <= page.evaluate("innerWidth")
    assert page.evaluate("location.protocol") == "file:"
    assert page.errors == []


def test_drawn_chart_labels_limited_cell(page, report_files):
    page.open(report_files[1]["html"], 400)
    texts = page.evaluate(
        "[...document.querySelectorAll('#comparison-0 svg text')].map(t => t.textContent)"
    )
    assert "≥ 1,443 · generator" in texts
    assert "failed" in texts


def test_markup_in_result_stays_text(page, tmp_path):
    header, cells = load()
    header["title"] = "<script>document.title = 'run'</script><img src=x onerror=alert(1)>"
    page.open(_write(header, cells, tmp_path), 400)
    assert page.evaluate("document.querySelector('h1').textContent") == header["title"]
    assert page.evaluate("document.title") == header["title"]
    assert page.errors == []
