"""The Swagger page in a real browser, which enforces the page's Content-Security-Policy."""

import time

import pytest

from load_lab.stack.native.program_paths import browser_env, find_browser
from tests.support.browser import browser
from tests.support.missing import missing

pytestmark = pytest.mark.full

PROGRAM = find_browser()


@pytest.fixture(scope="module")
def page():
    if PROGRAM is None:
        missing("Chromium is not here: no package of it, and no apt to get one from")
    with browser(PROGRAM, browser_env(PROGRAM)) as page:
        yield page


def test_docs_page_shows_every_route_under_its_policy(stack, page):
    page.send("Page.navigate", url=f"{stack.settings().target_url}/api/docs/")
    deadline = time.monotonic() + 60
    while page.evaluate("document.querySelectorAll('.opblock').length") < 3:
        assert time.monotonic() < deadline, f"the routes did not appear: {page.errors}"
        time.sleep(0.1)
    assert page.errors == []
    # The policy is active: the browser blocks an inline script.
    page.evaluate(
        "document.body.append(Object.assign(document.createElement('script'),"
        " {textContent: 'window.ran = true'}))"
    )
    assert page.evaluate("window.ran") is None
