"""pretix, a server-rendered site that the lab does not know: which of its pages are in the mix, and
that no GET that acts was sent.
"""

import json
import re
import time
from collections import Counter

import httpx
import pytest

from load_lab.paths import ROOT
from load_lab.settings import LOOPBACK
from load_lab.stack.engine import settings_of
from load_lab.stack.native.supervision import wait_for
from tests.apps import pretix_site
from tests.apps.pretix_site import FOLDER, NAME, PASSWORD
from tests.support import pypi_app
from tests.support.ports import free_port
from tests.support.pypi_app import timed

pytestmark = [pytest.mark.alone, pytest.mark.machine(part="apps")]

ROUTES = ROOT / "tests/apps/pretix_routes.py"
# It ends a session that comes with another one.
BROWSER = "Mozilla/5.0"
# Of the first break point, from the first typed line.
MOST_SECONDS = 900

# The least share of the routes with a page that is in the mix. The rest has a verb in its name
# ("delete" asks first, in pretix), or needs a value that no page has.
FOUND_WITH_SESSION, FOUND_WITHOUT_SESSION = 0.75, 0.65
# The same without those that have a verb. The aim is 1 with a session.
FOUND_OF_OTHERS = 0.9

# GET requests that act, from reading pretix's views. Most other "delete" and "cancel" ask first.
ACTS = {
    "control:global.update": "stores that the notice of an update was read",
    "control:auth.invite": "joins a team",
    "control:auth.logout": "ends the session",
    "control:user.sudo.stop": "ends the session of an administrator",
    "plugins:banktransfer:refunds.download": "marks an export as downloaded",
    "plugins:paypal2:abort": "ends a payment",
    "plugins:paypal2:isu.disconnect": "ends the connection to PayPal",
    "plugins:paypal2:isu.return": "stores the account of PayPal",
    "plugins:paypal2:return": "stores a payment",
    "plugins:stripe:oauth.disconnect": "ends the connection to Stripe",
    "plugins:stripe:oauth.return": "stores the account of Stripe",
    "plugins:stripe:return": "stores a payment",
    "plugins:stripe:sca.return": "stores a payment",
    "plugins:ticketoutputpdf:getdefault": "creates a layout if there is none",
    "presale:event.order.open": "stores that an address of mail is right",
    "presale:event.order.pay.complete": "stores a payment",
    "presale:event.payment.unlock": "unlocks a payment method for the session",
    "presale:locale.set": "sets the cookie of the language",
    "presale:organizer.customer.change.confirm": "changes an address of mail",
    "presale:organizer.customer.login.return": "logs a customer in",
    "presale:organizer.customer.logout": "ends the session of a customer",
}
# Of these, what is sent: nothing in its name says that it acts.
SENT_TODAY = {"plugins:ticketoutputpdf:getdefault"}
# Tables that pages fill which only show something (sessions, caches, keys that are made when they
# are first asked for), and the one of SENT_TODAY.
MAY_CHANGE = {
    "django_session",
    "pretixbase_cachedcombinedticket",
    "pretixbase_cachedticket",
    "pretixbase_event_settingsstore",
    "pretixbase_globalsettingsobject_settingsstore",
    "pretixbase_organizer_settingsstore",
    "ticketoutputpdf_ticketlayout",
}


@pytest.fixture(scope="module")
def programs():
    return pypi_app.install(NAME)


@pytest.fixture(scope="module")
def environ(stack, programs):
    """Return the environment of pretix, with a Redis of its own and a database with data."""
    stored = f"pretix_{pypi_app.digest_of(pretix_site.DATA, pretix_site.REQUIREMENTS)}"
    with pypi_app.redis(FOLDER) as redis:
        env = pretix_site.environment(settings_of(stack).LAB_POSTGRES_PORT, redis)
        if not pypi_app.create_database(stack, NAME, PASSWORD, stored):
            pretix_site.fill(programs, env)
            pypi_app.store_database(stack, NAME, stored)
        yield env


@pytest.fixture(scope="module")
def log():
    path = FOLDER / "access.log"
    path.write_text("")
    return path


@pytest.fixture(scope="module")
def url(environ, programs, log):
    port = free_port()
    options = ["--threads", "4", "--access-logfile", str(log), "pretix.wsgi"]
    # It answers no other host and port.
    env = environ | {"PRETIX_PRETIX_URL": f"http://{LOOPBACK}:{port}"}
    with pypi_app.gunicorn(programs, port, options, env, FOLDER) as address:
        yield address


@pytest.fixture(scope="module")
def routes(programs, environ):
    """Return pretix's routes, each with an object's path or the reason why it has none."""
    return json.loads(pretix_site.run_python(programs, ROUTES, env=environ))


@pytest.fixture
def target(url, programs, tmp_path):
    """Write the file of the target, as docs/own-app.md says; return its path."""
    path = tmp_path / "pretix.toml"
    manage = json.dumps([str(programs / "python"), "-m", "pretix"])
    path.write_text(f'url = "{url}"\nready = "/healthcheck/"\nmanage = {manage}\n')
    return path


def test_public_pages_of_pretix(lab, stack, target, url, routes, environ, programs, log):
    add(target, '[values]\norganizer = "openair"\nevent = ["summer", "tour"]\n')
    sent = Sent(log, programs, environ)
    before = digests(stack)
    with timed("mix without a session"):
        made = lab("mix", "make", str(target), "--json", **environ)
    assert made.code == 0, made.err
    assert "it asks for a login" in made.err
    assert_harmless(sent, before, stack)
    with httpx.Client(base_url=url, headers={"User-Agent": BROWSER}, timeout=120) as client:
        found, _ = shares(made, target, routes, client, sent)
    assert found >= FOUND_WITHOUT_SESSION


def test_break_point_of_pretix(lab, stack, target, url, routes, environ, programs, log):
    headers = {"User-Agent": BROWSER, "Cookie": login(url)}
    add(target, '[headers]\nCookie = "${PRETIX_COOKIE}"\n' + f'User-Agent = "{BROWSER}"\n')
    env = environ | {"PRETIX_COOKIE": headers["Cookie"]}
    wait_for(lambda: "POST /control/login" in log.read_text(), seconds=10, what="the access log")
    sent = Sent(log, programs, environ)
    before = digests(stack)
    started = time.monotonic()
    with timed("mix with a session"):
        made = lab("mix", "make", str(target), "--yes", "--json", **env)
    assert made.code == 0, made.err
    assert_harmless(sent, before, stack)
    page = httpx.get(f"{url}/control/", headers=headers, timeout=120)
    assert page.status_code == httpx.codes.OK, "the session is over"
    # Some pages ask for the password again some minutes after a login.
    headers["Cookie"] = env["PRETIX_COOKIE"] = login(url)
    with timed("break point"):
        ramp = ("--rate", "30", "--duration", "60s", "--json")
        run = lab("k6", "breakpoint", "--target", str(target), *ramp, **env)
    assert run.code == 0, run.err
    assert time.monotonic() - started < MOST_SECONDS
    print(run.err)
    assert run.json["outcome"] == "broke"
    assert run.json["failed"] / run.json["requests"] < 0.01
    assert run.json["recorded"]["k6"] == run.json["recorded"]["prometheus"]
    assert {"target", "postgres", "redis-server"} <= set(run.json["cpu_ms_per_request"])
    with httpx.Client(base_url=url, headers=headers, timeout=120) as client:
        found, of_others = shares(made, target, routes, client, sent)
    assert found >= FOUND_WITH_SESSION
    assert of_others >= FOUND_OF_OTHERS


class Sent:
    """What the site's access log has from now on."""

    def __init__(self, log, programs, environ):
        self._log, self._programs, self._environ = log, programs, environ
        self._start = log.stat().st_size

    def requests(self):
        """Return method and path of each request."""
        text = self._log.read_text()[self._start :]
        return re.findall(r'"([A-Z]+) ([^ ?]*)\S* HTTP/', text)

    def routes_of(self, paths):
        """Return route and name of each path that belongs to a route."""
        text = "\n".join(sorted(set(paths)))
        argv = (self._programs, ROUTES, "resolve")
        answers = json.loads(pretix_site.run_python(*argv, env=self._environ, text=text))
        return {path: tuple(each) for path, each in answers.items() if each}


def add(target, text):
    target.write_text(target.read_text() + text)


def login(url):
    """Log in as a browser does; return its cookies."""
    with httpx.Client(base_url=url, headers={"User-Agent": BROWSER}, timeout=120) as client:
        client.get("/control/login")
        form = {
            "email": "admin@example.org",
            "password": PASSWORD,
            "csrfmiddlewaretoken": client.cookies["pretix_csrftoken"],
        }
        response = client.post("/control/login", data=form, headers={"Referer": url})
        assert response.status_code == httpx.codes.FOUND
        return "; ".join(f"{name}={value}" for name, value in client.cookies.items())


def digests(stack):
    """Return a digest of each table's rows."""
    tables = stack.sql(NAME, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    digest = "SELECT md5(coalesce(string_agg(t::text, '|' ORDER BY t::text), '')) FROM {} t"
    return {each: stack.sql(NAME, digest.format(each)) for each in sorted(tables)}


def assert_harmless(sent, before, stack):
    requests = sent.requests()
    names = {name for _, name in sent.routes_of(path for _, path in requests).values()}
    acted = ACTS.keys() & names
    changed = {table for table, rows in digests(stack).items() if rows != before[table]}
    print(f"{len(requests)} requests; sent although they act: {acted}; changed: {changed}")
    assert {method for method, _ in requests} <= {"GET", "HEAD"}
    assert acted <= SENT_TODAY
    assert changed <= MAY_CHANGE


def shares(made, target, routes, client, sent):
    """Return which part of the routes that have a page is in the mix: of all, and of those without
    a verb. Print the others.
    """
    mix = json.loads(target.with_suffix(".mix.json").read_text())
    paths = [each["path"].partition("?")[0] for o in mix["operations"] for each in o["requests"]]
    found = {route for route, _ in sent.routes_of(paths).values()}
    answers = {route: answer_of(row, client) for route, row in routes.items()}
    pages = found | {route for route, answer in answers.items() if answer == "200"}
    reasons = {each["name"]: each["reason"] for each in made.json["left_out"]}
    lost = {route: reasons.get(name_of(route), "not described") for route in pages - found}
    others = [route for route, reason in lost.items() if not reason.startswith("not safe")]
    print(f"{len(found)} of {len(pages)} routes with a page are in the mix; {len(others)} of the")
    print("others have no verb")
    for route, reason in sorted(lost.items()):
        print(f"  {route}: {reason}")
    for reason, count in Counter(answers[each] for each in routes.keys() - pages).most_common():
        print(f"{count:6} routes have no page: {reason}")
    return len(found) / len(pages), len(found) / (len(found) + len(others))


def answer_of(row, client):
    """Return the status of a route's page as text, or why none is expected."""
    if row["name"] in ACTS:
        return "its GET acts"
    if "none" in row:
        return row["none"]
    status = client.get(row["path"]).status_code
    # What an answer stores must not reach the next request.
    client.cookies.clear()
    return str(status)


def name_of(route):
    """Return the name of the operation in a mix."""
    path = re.sub(r"\(\?P<(\w+)>(?:[^()\[\]]|\[[^\]]*\])*\)|<(?:\w+:)?(\w+)>", r"{\1\2}", route)
    return "GET /" + re.sub(r"[\^$]", "", path).replace("/?", "/").replace("\\", "")
