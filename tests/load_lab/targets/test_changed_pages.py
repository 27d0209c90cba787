"""Loads of sites whose pages turn into others with status 200, as a user runs them."""

import json
import re

import pytest

from tests.support.html_site import HtmlSite, login_page, serve_site

PATHS = ("/items/", "/products/", "/items/7/", "/items/8/", "/public/", "/login/", "/")
LINE = '127.0.0.1 - - [24/Nov/2026:10:00:00 +0000] "GET {} HTTP/1.1" 200 9 "-" "-"\n'
HOLD = ("--rate", "30", "--duration", "40s", "--json")


@pytest.fixture
def target(lab, tmp_path):
    """Return a function that makes the mix of a site from a log; it returns the target's file."""

    def make(site):
        log, path = tmp_path / "access.log", tmp_path / "site.toml"
        log.write_text("".join(LINE.format(each) for each in PATHS))
        path.write_text(f'url = "{site.url}"\n')
        made = lab("mix", "make", str(path), "--log", str(log))
        assert made.code == 0, made.err
        return path

    return make


def test_mix_has_what_its_pages_look_like(target):
    with serve_site(HtmlSite()) as site:
        mix = json.loads(target(site).with_suffix(".mix.json").read_text())
    pages = {each["name"]: each["page"] for each in mix["operations"]}
    assert pages["GET /items/{value}/"] == {"least": 28, "most": 28, "has_login": False}
    assert pages["GET /products/"]["most"] > 3000
    assert {name for name, each in pages.items() if each["has_login"]} == {
        "GET /public/",
        "GET /login/",
    }


FAULTS = {
    "login page of 20 kB": (login_page(20_000), "pages have a login form"),
    "small login page": pytest.param(
        login_page(), "pages have a login form", marks=pytest.mark.full
    ),
    "error page": ("<html><h1>Sorry, something went wrong</h1></html>", "pages are others"),
}


@pytest.mark.parametrize(("body", "message"), FAULTS.values(), ids=FAULTS)
def test_load_ends_soon_after_its_pages_became_one_page(lab, stack, target, body, message):
    with serve_site(HtmlSite(answer=lambda _: (200, body, ""))) as site:
        path = target(site)
        site.faulty_from = site.requests + 300
        run = lab("k6", "hold", "--target", str(path), *HOLD)
    assert run.code == 1, run.err
    document = run.json
    assert document["outcome"] == "failed"
    assert document["failed"] == 0
    assert message in document["verdict"]
    change = document["page_change"]
    assert {"GET /items/", "GET /products/"} & set(change["operations"])
    # 300 requests at 30/s.
    assert 8 < change["after"] < 14
    assert document["stopped_after"] - change["after"] < 10
    assert re.search(r"has [\d,]+ characters instead of [\d,]+", document["verdict"])


def test_pages_of_any_length_and_public_login_forms_are_fine(lab, stack, target):
    with serve_site(HtmlSite(varies=True)) as site:
        run = lab(
            *("k6", "hold", "--target", str(target(site)), "--rate", "30"),
            *("--duration", "12s", "--p95", "20s", "--json"),
        )
    assert run.code == 0, run.err
    assert run.json["outcome"] == "held", run.json["verdict"]
    assert run.json["page_change"] is None


BEFORE = {
    "login page": ((200, login_page(), ""), "with a login form that the page had not", "Log in"),
    "redirect": ((302, "", "/login/?next=/"), "302 to /login/, expected 2xx", "Log in again"),
    "error": ((500, "boom", ""), "500, expected 2xx", "See the target's log"),
    "gone": ((404, "no", ""), "404, expected 2xx", "Make the mix again"),
}


@pytest.mark.parametrize(("answer", "message", "advice"), BEFORE.values(), ids=BEFORE)
def test_load_of_other_pages_does_not_begin(lab, stack, target, answer, message, advice):
    def faulty(path):
        return answer if path.startswith("/items/") else (200, HtmlSite().page(path), "")

    with serve_site(HtmlSite(answer=faulty)) as site:
        path = target(site)
        site.faulty_from = site.requests
        run = lab("k6", "hold", "--target", str(path), *HOLD)
    assert run.is_one_message(1)
    assert f"GET /items/: {message}" in run.err or message in run.err
    assert advice in run.err
    assert ("Make the mix again" in run.err) == (advice == "Make the mix again")
