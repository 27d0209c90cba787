"""When a load's pages are others than those of its mix, by simulated samples."""

import random
from itertools import count

import pytest

from load_lab.load.page_change import PageSample, SampledPages
from load_lab.paths import ROOT
from load_lab.targets.mix import Page
from load_lab.targets.seen_pages import LOGIN, page_of, together

LISTS = {f"GET /list{i}/": Page(least=3000, most=3400, has_login=False) for i in range(3)}
DETAIL = {"GET /item/": Page(least=78, most=82, has_login=False)}
HEADER = {"GET /": Page(least=9000, most=9000, has_login=True)}
SITE = LISTS | DETAIL | HEADER
CHANGED_AT = 20.0


def find_change(samples, pages):
    return SampledPages(pages).add(samples)


def _samples(pages, length, seconds=40, seed=0):
    """Return a sample of each page per second; `length` gives length and login by page and time."""
    rng = random.Random(seed)
    return [
        PageSample(second + rng.random(), name, *length(name, second, rng))
        for second in range(seconds)
        for name in pages
    ]


def _usual(name, _second, rng):
    page = SITE[name]
    return rng.randint(page.least, page.most), page.has_login


def _then(length, has_login=False):
    """Return pages that are usual until CHANGED_AT, and then one page."""

    def lengths(name, second, rng):
        return _usual(name, second, rng) if second < CHANGED_AT else (length(rng), has_login)

    return lengths


CHANGES = {
    "small login page": (_then(lambda rng: rng.randint(185, 195), has_login=True), SITE, True),
    "login page of 20 kB": (_then(lambda _: 20_000, has_login=True), SITE, True),
    "login page as long as the pages": (_then(lambda _: 3200, has_login=True), LISTS, True),
    "login page of any length": (
        _then(lambda rng: rng.randint(100, 90_000), has_login=True),
        LISTS,
        True,
    ),
    "small error page": (_then(lambda _: 62), SITE, False),
    "long error page": (_then(lambda rng: rng.randint(15_000, 15_400)), LISTS | DETAIL, False),
    "empty page": (_then(lambda _: 0), SITE, False),
    "error page, then a login page": (
        lambda name, second, rng: (
            _usual(name, second, rng) if second < CHANGED_AT - 1 else (300, second >= CHANGED_AT)
        ),
        LISTS,
        True,
    ),
    "one operation alone": (_then(lambda _: 62), {"GET /list0/": LISTS["GET /list0/"]}, False),
}


@pytest.mark.parametrize(("length", "pages", "has_login"), CHANGES.values(), ids=CHANGES)
def test_pages_that_turn_into_one_page_are_noticed_within_seconds(length, pages, has_login):
    samples = sorted(_samples(pages, length), key=lambda each: each.at)
    found = next(
        change for n in count(1) if (change := find_change(samples[:n], pages)) or n > len(samples)
    )
    assert found.has_login == has_login
    assert CHANGED_AT - 1 <= found.after < CHANGED_AT + 2
    # One after the other, as a load looks at them.
    sampled = SampledPages(pages)
    noticed = next(n for n in count(1) if sampled.add(samples[n - 1 : n]))
    assert samples[noticed - 1].at < CHANGED_AT + 6
    assert found.samples <= 5


def _half_with_login(name, second, rng):
    """One operation of three asks for a login: the others need none."""
    if second >= CHANGED_AT and name == "GET /list1/":
        return 250, True
    return _usual(name, second, rng)


def test_only_the_operations_that_changed_are_named():
    found = find_change(_samples(SITE, _half_with_login), SITE)
    assert found.operations == ("GET /list1/",)
    assert "GET /list1/ has 250 characters instead of 3," in found.text
    assert found.text.startswith("from 20 s on, pages have a login form")


FINE = {
    "usual pages": _usual,
    "pages of any length": lambda name, _, rng: (rng.randint(100, 300_000), SITE[name].has_login),
    "two lengths": lambda name, _, rng: (rng.choice([3200, 30_000]), SITE[name].has_login),
    "lists that grow": lambda name, second, _: (
        round(SITE[name].most * 1.06**second),
        SITE[name].has_login,
    ),
    "lists that shrink": lambda name, second, _: (
        round(SITE[name].least / 1.06**second),
        SITE[name].has_login,
    ),
    "lists that have grown since the mix was made": lambda name, _, rng: (
        4 * SITE[name].most + rng.randint(0, 100),
        SITE[name].has_login,
    ),
    "a login form now and then": lambda name, second, rng: (
        _usual(name, second, rng)[0],
        SITE[name].has_login or rng.random() < 0.05,
    ),
    "rare long pages": lambda name, second, rng: (
        90_000 if rng.random() < 0.05 else _usual(name, second, rng)[0],
        SITE[name].has_login,
    ),
}


@pytest.mark.parametrize("length", FINE.values(), ids=FINE)
def test_pages_that_vary_are_fine(length):
    wrong = [
        seed
        for seed in range(100)
        if find_change(_samples(SITE, length, seed=seed), SITE) is not None
    ]
    assert len(wrong) <= 3


def test_one_error_page_from_the_start_is_noticed_where_pages_differed():
    pages = DETAIL | LISTS
    assert find_change(_samples(pages, lambda *_: (66, False)), pages)
    # Whether a list is an error page, or has fewer rows now, is not known.
    assert find_change(_samples(LISTS, lambda *_: (66, False)), LISTS) is None


def test_operations_without_a_page_in_the_mix_are_not_compared():
    samples = [PageSample(float(at), "GET /api/", 10, True) for at in range(20)]
    assert find_change(samples, SITE) is None


@pytest.mark.parametrize(
    ("body", "has_login"),
    [
        (b'<form><input name="user"><input type="password"></form>', True),
        (b"<INPUT TYPE=password>", True),
        (b"<form method=post><input name=password></form>", True),
        (b"<p>Forgot your password?</p><input name=q>", False),
    ],
)
def test_page_has_its_length_and_whether_it_asks_for_a_login(body, has_login):
    assert page_of(body) == Page(least=len(body), most=len(body), has_login=has_login)


def test_length_is_in_characters_and_no_answer_is_no_page():
    assert page_of("ä€".encode()) == Page(least=2, most=2, has_login=False)
    assert page_of(b"") is None
    both = together([page_of(b"abc"), page_of(b"<input type=password>")])
    assert both == Page(least=3, most=21, has_login=True)
    assert together([page_of(b"abc"), None]) is None
    assert together([]) is None


def test_k6_finds_a_login_form_as_the_exploration_does():
    script = (ROOT / "k6/lib/pages.js").read_text()
    assert f"/{LOGIN.pattern}/i" in script
