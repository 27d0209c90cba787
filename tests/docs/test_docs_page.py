"""The Swagger page in a real browser, which refuses whatever its policy does not allow."""

import time

import pytest

from lab.stack.native.programs import browser_env, find_browser
from tests.support.browser import browser

PROGRAM = find_browser()


@pytest.fixture(scope="module")
def page():
    if PROGRAM is None:
        pytest.skip("Chromium is not here: no package of it, and no apt to get one from")
    with browser(PROGRAM, browser_env(PROGRAM)) as page:
        yield page


def test_it_shows_every_route_and_its_policy_lets_through_all_that_it_needs(stack, page):
    page.send("Page.navigate", url=f"{stack.settings().target_url}/api/docs/")
    deadline = time.monotonic() + 60
    while page.ask("document.querySelectorAll('.opblock').length") < 3:
        assert time.monotonic() < deadline, f"the routes did not appear: {page.trouble}"
        time.sleep(0.1)
    assert page.trouble == []
    # It is the policy that holds: what comes from elsewhere, or stands in the page, is refused.
    page.ask(
        "document.body.append(Object.assign(document.createElement('script'),"
        " {textContent: 'window.ran = true'}))"
    )
    assert page.ask("window.ran") is None
