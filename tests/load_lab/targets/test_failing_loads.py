"""What a load says of requests that fail, of an app that goes down, and of settings that change."""

import subprocess
import sys
import threading
from itertools import islice

import pytest

from load_lab.stack.native.supervision import port_is_open, wait_for
from tests.support.html_site import HtmlSite, serve_site
from tests.support.ports import free_port

LINE = '127.0.0.1 - - [24/Nov/2026:10:00:00 +0000] "GET {} HTTP/1.1" 200 9 "-" "-"\n'
# Other tests fill the generator's CPUs, which would stop a ramp before its break.
RAMP = ("--rate", "40", "--duration", "25s", "--no-early-stop", "--p95", "20s", "--json")
# Of a busy machine, which its own tests judge.
BUSY = ("others", "generator_cpu")


@pytest.fixture
def make(lab, tmp_path):
    """Return a function that makes the mix of a site; it returns the target's file."""

    def make_mix(url, *paths, headers=""):
        log, path = tmp_path / "access.log", tmp_path / "site.toml"
        log.write_text("".join(LINE.format(each) for each in paths))
        path.write_text(f'url = "{url}"\n{headers}')
        made = lab("mix", "make", str(path), "--log", str(log))
        assert made.code == 0, made.err
        return path

    return make_mix


FAULTS = {
    "redirect": ((302, "", "/login/?next=/items/"), "302 to /login/: ", "log in again"),
    "error": pytest.param((500, "boom", ""), "500: ", "see the log", marks=pytest.mark.full),
}


@pytest.mark.parametrize(("answer", "status", "advice"), FAULTS.values(), ids=FAULTS)
def test_errors_that_begin_at_one_moment_are_no_limit(lab, stack, make, answer, status, advice):
    with serve_site(HtmlSite(answer=lambda _: answer)) as site:
        path = make(site.url, "/items/", "/items/7/", "/products/", "/")
        site.faulty_from = site.requests + 200
        run = lab("k6", "breakpoint", "--target", str(path), *RAMP)
    assert run.code == 0, run.err
    document = run.json
    assert document["outcome"] == "broke"
    failed = f"; {status}{document['failed']:,} of {document['requests']:,}, from "
    assert failed in document["verdict"]
    assert "/s on (GET /" in document["verdict"]
    began = document["errors_began"]
    assert (began["operations"], began["of"], began["lasting"]) == (4, 4, True)
    if document["limited_by"] not in BUSY:
        assert document["limited_by"] == "errors", document["bottleneck"]
        assert "no limit of the target" in document["verdict"]
        assert "errors began at one moment" in document["bottleneck"]["headline"]
        assert document["bottleneck"]["remedy"].startswith(advice)


def test_addresses_that_are_gone_from_the_start_need_a_new_mix(lab, stack, make):
    gone = {f"/items/{n}/" for n in range(5, 9)}
    usual = HtmlSite()

    def answer(path):
        return (404, "no", "") if path in gone else (200, usual.page(path), "")

    with serve_site(HtmlSite(answer=answer)) as site:
        path = make(site.url, "/products/", *(f"/items/{n}/" for n in range(1, 9)))
        site.faulty_from = site.requests
        run = lab("k6", "breakpoint", "--target", str(path), *RAMP)
    document = run.json
    assert document["outcome"] == "broke"
    assert "; 404: " in document["verdict"]
    if document["limited_by"] not in BUSY:
        assert document["limited_by"] == "errors", document["bottleneck"]
        assert "most errors are 404" in document["bottleneck"]["headline"]
        assert document["bottleneck"]["remedy"] == "make the mix again: lab mix make NAME"


def kill_after_requests(server, count):
    """Kill a server that logs a line per request, in the middle of its load."""
    for _ in islice(server.stderr, count):
        pass
    server.kill()


def test_app_that_goes_down_is_one_line(lab, stack, make, tmp_path):
    port = free_port()
    argv = [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", str(port)]
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    with subprocess.Popen(argv, cwd=tmp_path, **pipes) as server:
        wait_for(lambda: port_is_open("127.0.0.1", port), seconds=20, what="the server")
        path = make(f"http://127.0.0.1:{port}", "/")
        threading.Thread(target=kill_after_requests, args=(server, 100)).start()
        load = ("--rate", "20", "--duration", "20s")
        run = lab("k6", "hold", "--target", str(path), *load)
    assert run.is_one_message(1)
    assert "went down during the test" in run.err
    lines = run.err.splitlines()
    # The first may be the request that was being answered: "EOF".
    assert len([line for line in lines if "without a response, the first: " in line]) == 1
    assert len([line for line in lines if "refused" in line or "reset" in line]) <= 2, lines


def test_setting_that_changes_during_a_load_is_in_its_result(lab, stack):
    log = stack._state.logs / "nginx-access.log"
    before = log.stat().st_size

    def has_begun():
        with log.open("rb") as file:
            file.seek(before)
            return sum(b'"/api/hotel/"' in line for line in file) > 20

    def change():
        wait_for(has_begun, seconds=60, what="the load")
        changed.append(lab("set", "LAB_NGINX_CACHE_TTL=2s"))

    changed = []
    setting = threading.Thread(target=change)
    setting.start()
    load = ("--scenario", "list", "--rate", "5", "--duration", "20s", "--p95", "20s", "--json")
    run = lab("k6", "hold", *load)
    setting.join()
    assert changed[0].code == 0, changed[0].err
    verdict, (text,) = run.json["verdict"], run.json["setting_changes"]
    assert text.startswith("LAB_NGINX_CACHE_TTL from 1s to 2s after ")
    assert verdict.endswith(f"; setting changed during the load: {text}")


@pytest.mark.parametrize("kind", ["constant", "command"])
def test_mix_with_the_login_page_itself_loads_with_a_session(lab, stack, make, kind):
    headers = {
        "constant": '[headers]\nCookie = "session=one"\n',
        "command": '[auth]\ncommand = ["echo", "one"]\nheader = "Cookie"\n'
        'value = "session={token}"\n',
    }
    paths = ("/login/", "/items/", "/items/7/")
    with serve_site(HtmlSite(session="session=one")) as site:
        path = make(site.url, *paths, headers=headers[kind])
        load = ("--rate", "20", "--duration", "10s", "--p95", "20s", "--json")
        run = lab("k6", "hold", "--target", str(path), *load)
        assert run.code == 0, run.err
        assert run.json["outcome"] == "held", run.json["verdict"]
        assert {each["name"] for each in run.json["by_operation"]} >= {"GET /login/"}
        # Its session is over.
        site.session = "session=two"
        late = lab("k6", "hold", "--target", str(path), *load)
    assert late.is_one_message(1)
    assert "GET /items/: 200 with a login form that the page had not" in late.err
    assert "GET /login/:" not in late.err
    assert "Log in again" in late.err
