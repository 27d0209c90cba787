"""GETs that act: what their names say of them, and what an exploration by routes does with them."""

import os
import pty
import subprocess
import sys
from contextlib import contextmanager

import pytest

from load_lab.paths import ROOT
from load_lab.stack.native.supervision import port_is_open, wait_for
from load_lab.targets.sources.safety import stem_of_path, stem_of_view
from tests.support.ports import free_port

PROJECT = ROOT / "tests/support/session_django"
PYTHON = sys.executable
# What each site has besides the GETs that act.
PAGES = {"GET /", "GET /login/", "GET /items/", "GET /items/{pk}/", "GET /orders/{pk}/"}


class Site:
    """A site that runs, and the target file that names it."""

    def __init__(self, name, folder):
        self.name, self.folder, self.port = name, folder, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = folder / "acted.log"
        self.target = folder / "site.toml"

    def write_target(self, credentials):
        manage = f'"{PYTHON}", "{PROJECT / "manage.py"}"'
        auth = f'[auth]\ncommand = [{manage}, "login", "{self.url}"]\nheader = "Cookie"\n'
        sections = {
            "command": f'{auth}value = "session={{token}}"\n',
            "constant": '[headers]\nCookie = "session=${SESSION}"\n',
            "none": "",
        }
        self.target.write_text(f'url = "{self.url}"\nmanage = [{manage}]\n{sections[credentials]}')

    def make(self, lab, *options, **environ):
        argv = ("mix", "make", str(self.target), "--json", *options)
        return lab(*argv, SITE=self.name, ACTED=str(self.log), **environ)

    def acted(self):
        return self.log.read_text().splitlines() if self.log.exists() else []


@pytest.fixture
def start_site(tmp_path):
    @contextmanager
    def start(name):
        site = Site(name, tmp_path)
        server = [PYTHON, "-m", "gunicorn", "--threads", "4", "--bind", f"127.0.0.1:{site.port}"]
        env = {**os.environ, "SITE": name, "ACTED": str(site.log)}
        process = subprocess.Popen([*server, "manage:application"], cwd=PROJECT, env=env)
        try:
            wait_for(lambda: port_is_open("127.0.0.1", site.port), seconds=60, what="gunicorn")
            yield site
        finally:
            process.terminate()
            process.wait()

    return start


@pytest.mark.parametrize("name", ["separators", "verbs", "views", "decorated", "run together"])
def test_no_get_that_acts_is_sent(lab, start_site, name):
    with start_site(name) as site:
        site.write_target("command")
        made = site.make(lab, "--yes")
        assert made.code == 0, made.err
        assert site.acted() == []
        assert {each["name"] for each in made.json["operations"]} == PAGES
        reads = [each for each in made.json["left_out"] if each["name"].startswith("GET ")]
        assert all(each["reason"].startswith("not safe: stem `") for each in reads), reads


def test_nouns_are_sent(lab, start_site):
    with start_site("nouns") as site:
        site.write_target("command")
        made = site.make(lab, "--yes")
        assert [each["name"] for each in made.json["left_out"]] == ["DELETE /orders/{pk}/"]
        assert "GET /approvals/" in {each["name"] for each in made.json["operations"]}


FAREWELLS = pytest.mark.parametrize("name", ["farewell", "farewell to the login"])


@FAREWELLS
def test_session_that_a_get_ends_is_made_again(lab, start_site, name):
    with start_site(name) as site:
        site.write_target("command")
        made = site.make(lab, "--yes")
        assert {each["name"] for each in made.json["operations"]} == PAGES
        (reason,) = [e["reason"] for e in made.json["left_out"] if e["name"] == "GET /bye/"]
        assert reason == (
            "not safe: it ended the session (GET /items/ then redirects to /login/?next=/)"
        )


@FAREWELLS
def test_constant_session_that_a_get_ends_is_an_error(lab, start_site, name):
    with start_site(name) as site:
        site.write_target("constant")
        made = site.make(lab, "--yes", SESSION=new_session(site))
        assert made.is_one_message(1)
        assert "GET /bye/ ended the session" in made.err
        assert "--leave-out 'GET /bye/'" in made.err
        assert not (site.folder / "site.mix.json").exists()

        made = site.make(lab, "--yes", "--leave-out", "GET /bye/", SESSION=new_session(site))
        assert made.code == 0, made.err
        assert {each["name"] for each in made.json["operations"]} == PAGES


def new_session(site):
    argv = [PYTHON, str(PROJECT / "manage.py"), "login", site.url]
    env = {**os.environ, "SITE": site.name}
    return subprocess.run(argv, env=env, capture_output=True, text=True, check=True).stdout.strip()


def test_requests_with_credentials_need_a_yes(lab, start_site, monkeypatch):
    with start_site("farewell") as site:
        site.write_target("command")
        refused = site.make(lab)
        assert refused.is_one_message(2)
        assert "  GET /items/{pk}/\n" in refused.err
        assert "--yes" in refused.err

        planned = site.make(lab, "--dry-run")
        assert set(planned.json["operations"]) == PAGES | {"GET /bye/"}
        assert not (site.folder / "site.mix.json").exists()

        # Nobody's data is at risk without credentials.
        site.write_target("none")
        assert site.make(lab).code == 0


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 1)])
def test_question_in_a_terminal(start_site, answer, code):
    with start_site("nouns") as site:
        site.write_target("command")
        controller, terminal = pty.openpty()
        env = {**os.environ, "SITE": "nouns", "ACTED": str(site.log)}
        command = [str(ROOT / ".venv/bin/lab"), "mix", "make", str(site.target), "--json"]
        os.write(controller, f"{answer}\n".encode())
        process = subprocess.run(command, env=env, stdin=terminal, capture_output=True, text=True)
        os.close(controller)
        os.close(terminal)
        assert (process.returncode, (site.folder / "site.mix.json").exists()) == (code, code == 0)
        assert "Send these requests with your credentials?" in process.stderr


@pytest.mark.parametrize(
    ("path", "stem"),
    [
        ("/log-out/", "logout"),
        ("/account/sign_out", "signout"),
        ("/LogOut.aspx", "logout"),
        ("/session/log/out/", "logout"),
        ("/items/{id}/approve/", "approve"),
        ("/items/{id}/approveAll", "approve"),
        ("/sendNewsletter", "send"),
        ("/rebuild/", "rebuild"),
        ("/search/rebuildindex/", "rebuild"),
        ("/clearcache/", "clear"),
        ("/impersonate/{id}/", "impersonate"),
        ("/i18n/setlang/", "setlang"),
        ("/set-language/", "set"),
        ("/users/{id}/unlock/", "unlock"),
        ("/items/?action=delete", "delete"),
        ("/a%20b/purge", "purge"),
        ("/jobs/{id}/start/", "start"),
        ("/accounts/{activation_key}/", "activation"),
        ("/vouchers/{v}/deletecarts", "delete"),
        ("/users/{id}/resetDriftThrottle", "reset"),
        ("/clearsessionsnow/", "clear"),
        ("/m/{id}/markread", "markread"),
        ("/keys/{id}/rotate", "rotate"),
        ("/empty-trash/", "empty"),
        ("/empty/", None),
        ("/orders/{code}/transition", "transition"),
        ("/locale/set", "set"),
        ("/paypal/return/", "return"),
        ("/stripe/oauth_callback", "callback"),
        ("/complete/{backend}/", "complete"),
        ("/auto-complete/", None),
        ("/autocomplete/", None),
        ("/returns/", None),
        ("/approvals/", None),
        ("/clearance/", None),
        ("/cancellations/", None),
        ("/subscribers/", None),
        ("/resetting/", None),
        ("/data/set/", None),
        ("/transitions/", None),
        ("/builds/", None),
        ("/senders/{id}/", None),
        ("/export-templates/", None),
        ("/import-jobs/", None),
        ("/csv-import-fields/", None),
        ("/settings-schema/", None),
        ("/load-balancers/{id}/", None),
        ("/catalogue/", None),
        ("/login/", None),
        ("/closet/", None),
        ("/settings/", None),
        ("/items/{id}/update/", None),
        ("/profile/update/", None),
        ("/update/", None),
        ("/control/global/update/", "update"),
        ("/cart/update", "update"),
        ("/set-password/", None),
        ("/published/", None),
        ("/runs/{run}/", None),
        ("/remarks/", None),
        ("/0190add6-dead-beef-8000-addedcab/", None),
    ],
)
def test_stem_of_a_path(path, stem):
    assert stem_of_path(path) == stem


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("userLogout", "logout"),
        ("OrderApproveView", "approve"),
        ("clear_cache", "clear"),
        ("SyncView", "sync"),
        ("export", "export"),
        ("orders_destroy", "destroy"),
        ("VoucherDeleteCarts", "delete"),
        ("Reset2FADriftThrottleView", "reset"),
        ("LocaleSet", "set"),
        ("LocaleViewSet", None),
        ("Set", None),
        ("ExportTemplateViewSet", None),
        ("orders_retrieve", None),
        ("LockList", None),
        ("", None),
    ],
)
def test_stem_of_a_view(name, stem):
    assert stem_of_view(name) == stem
