"""Routes of a real Django project, read by its own Python."""

import os
import sys
from pathlib import Path

import pytest

from load_lab.errors import UsageError
from load_lab.targets.sources.paths import Templates
from load_lab.targets.sources.routes import Route, read_routes, route_templates

PROJECT = Path(__file__).parents[2] / "support" / "plain_django"
MANAGE = [sys.executable, "manage.py"]
ENVIRON = {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"}
UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"


@pytest.fixture(scope="module")
def routes() -> tuple[Route, ...]:
    return read_routes(MANAGE, PROJECT, ENVIRON)


# template, its parameters' regular expressions, name, methods
EXPECTED = [
    ("/", {}, "home", ["GET"]),
    ("/ping/{code}/", {"code": UUID}, "hc-ping", ["GET"]),
    ("/form/{slug}", {"slug": "[-a-zA-Z0-9_]+"}, "", ["GET", "POST"]),
    ("/read-only/", {}, "", ["GET"]),
    ("/answer/", {}, "", ["PUT"]),
    ("/files/{file}", {"file": ".+"}, "", ["GET"]),
    ("/api/hotel/", {}, "v1:hotel-list", ["GET", "POST"]),
    ("/api/hotel", {}, "v1:hotel-list", ["GET", "POST"]),
    ("/api/hotel/{pk}/", {"pk": "[^/.]+"}, "v1:hotel-detail", ["GET", "DELETE"]),
    ("/api/hotel/{pk}", {"pk": "[^/.]+"}, "v1:hotel-detail", ["GET", "DELETE"]),
    (
        "/by-{_0}/{_1}/{_2}/",
        {"_0": "author|tag", "_1": r"\d{4}", "_2": "[a-z-]+"},
        "archive",
        ["GET"],
    ),
    ("/by-{_0}/page/", {"_0": "author|tag"}, "page", ["GET"]),
    (
        "/by-{_0}/page/{number}/",
        {"_0": "author|tag", "number": "[0-9]{1,3}"},
        "page",
        ["GET"],
    ),
    ("/{_0}.html", {"_0": "about|imprint"}, "static", ["GET"]),
    ("/ignored-case/", {}, "", ["GET"]),
    ("/news/{pk}/", {"pk": "[0-9]+"}, "", ["GET"]),
    ("/{language}/news/{pk}/", {"language": "en|de", "pk": "[0-9]+"}, "", ["GET"]),
]


def test_each_kind_of_route_is_read(routes):
    read = [(r.template, r.patterns, r.name, list(r.views)) for r in routes]
    assert read == EXPECTED


def test_templates_find_the_paths_of_their_routes(routes):
    templates = Templates(route_templates(routes))
    paths = {
        "/": "/",
        "/ping/0190c6a5-0000-4000-8000-00000000beef/": "/ping/{code}/",
        "/ping/no-uuid/": None,
        "/files/a/b/c.svg": "/files/{file}",
        "/api/hotel/": "/api/hotel/",
        "/api/hotel/caf%C3%A9/": "/api/hotel/{pk}/",
        "/by-tag/2026/winter-sale/": "/by-{_0}/{_1}/{_2}/",
        "/by-nobody/2026/winter-sale/": None,
        "/by-tag/page/12/": "/by-{_0}/page/{number}/",
        "/imprint.html": "/{_0}.html",
        "/de/news/7/": "/{language}/news/{pk}/",
        "/fr/news/7/": None,
        "/news/x/": None,
    }
    found = {path: templates.find(path) for path in paths}
    assert {path: m.template.path_template if m else None for path, m in found.items()} == paths


def test_templates_tell_the_values_of_a_path():
    templates = Templates(["/orders/{id}/", "/orders/{id}/lines/{n}", "/orders/latest/"])
    values = {
        "/orders/7/": ("7",),
        # With or without the slash at the end.
        "/orders/7": ("7",),
        "/orders/7/lines/a%20b/": ("7", "a b"),
        # A slash in a value separates nothing.
        "/orders/a%2Fb/": ("a/b",),
        "/orders/latest": (),
    }
    assert {path: templates.match(path).values for path in values} == values
    assert templates.match("/orders/7/8/") is None


def test_a_template_for_each_method_and_no_pair_that_differs_by_a_slash(routes):
    templates = [(t.method, t.path_template) for t in route_templates(routes)]
    assert [t for t in templates if t[1].startswith("/api/hotel")] == [
        ("GET", "/api/hotel/"),
        ("POST", "/api/hotel/"),
        ("GET", "/api/hotel/{pk}/"),
        ("DELETE", "/api/hotel/{pk}/"),
    ]


@pytest.mark.parametrize(
    ("command", "environ", "message"),
    [
        (["no-python-here", "manage.py"], {}, "cannot be started: .*no-python-here"),
        ([sys.executable, "no_manage.py"], {}, r"failed \(2\) in .*:\n.*no_manage.py"),
        (MANAGE, {"ROOT_URLCONF": "missing"}, "No module named 'missing'"),
        (["true"], {}, "printed no routes in .*:\nit printed nothing"),
        (["echo", "<<<routes [1] routes>>>"], {}, r"printed no routes: \[1\]"),
        (["echo", "<<<routes [] routes>>>"], {}, "has no routes. Does ROOT_URLCONF"),
    ],
)
def test_a_command_without_routes_is_a_usage_error(command, environ, message):
    with pytest.raises(UsageError, match=message) as error:
        read_routes(command, PROJECT, {**ENVIRON, **environ})
    assert len(str(error.value).splitlines()) <= 6


def test_a_folder_that_is_missing_is_a_usage_error(tmp_path):
    with pytest.raises(UsageError, match="cannot be started"):
        read_routes(MANAGE, tmp_path / "missing", ENVIRON)
