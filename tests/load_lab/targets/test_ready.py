"""When a target is ready: its file's path, or the first of the usual ones that answers."""

import pytest

from load_lab.errors import LabError
from load_lab.targets.adding import add_target
from load_lab.targets.declared import find_target
from tests.support.http_server import QuietHandler, serve_http


@pytest.fixture
def target(tmp_path):
    """Return a function that checks a target whose server has these statuses by path."""

    def check(statuses, *lines):
        class Handler(QuietHandler):
            def do_GET(self):
                asked.append(self.path)
                self.send_response(statuses.get(self.path, statuses.get("", 404)))
                self.send_header("Location", "/elsewhere/")
                self.send_header("Content-Length", "0")
                self.end_headers()

        asked = []
        with serve_http(Handler) as url:
            path = tmp_path / "site.toml"
            path.write_text("\n".join([f'url = "{url}"', "ready_seconds = 0.5", *lines]))
            find_target(str(path)).require_ready()
        return asked

    return check


def test_first_of_the_usual_paths_that_answers_is_taken(target):
    assert target({"/": 200}) == ["/"]
    assert target({"/": 302}) == ["/"]
    assert target({"/ready/": 200, "/login/": 200})[-1] == "/ready/"
    assert target({"/": 403, "/login/": 200})[-1] == "/login/"
    assert target({"/": 500, "/accounts/login/": 301})[-1] == "/accounts/login/"
    assert target({"/schema.json": 200}, 'openapi = "/schema.json"')[-1] == "/schema.json"


def test_path_of_the_file_must_answer_200(target):
    assert target({"/up": 200}, 'ready = "/up"') == ["/up"]
    with pytest.raises(LabError, match=r"/up gave no 200 within 0.5 s: it answers 302"):
        target({"/up": 302, "/": 200}, 'ready = "/up"')


def test_app_without_any_of_them_is_not_ready(target):
    with pytest.raises(LabError, match=r"/ answers 404\. Name a path that answers 200.*/login/"):
        target({})
    with pytest.raises(LabError, match=r"/ answers 401\. It needs a header"):
        target({"": 401})
    with pytest.raises(LabError, match=r"gave no 200 or redirect within 0.5 s: it answers 503"):
        target({"": 503})
    # It starts.
    with pytest.raises(LabError, match=r"it answers 503"):
        target({"/healthz": 503})


def test_target_is_added_without_a_path_and_its_file_has_none(tmp_path, monkeypatch):
    monkeypatch.setenv("LAB_PROJECT", str(tmp_path))
    (tmp_path / "targets").mkdir()

    class Handler(QuietHandler):
        def do_GET(self):
            self.send_response(302 if self.path == "/" else 404)
            self.send_header("Content-Length", "0")
            self.end_headers()

    with serve_http(Handler) as url:
        path = add_target("site", {"url": url, "ready_seconds": 0.5}, [], replace=False)
    assert "ready =" not in path.read_text()
