"""`lab status` and `lab up` while services do not answer: after an overload, or frozen."""

import signal
import socket
from contextlib import ExitStack, contextmanager

import psutil
import pytest

from load_lab.errors import LabError
from load_lab.stack import reported
from load_lab.stack.backlog import unanswered
from load_lab.stack.native import service_start
from load_lab.stack.native.supervision import wait_for

_REQUEST = b"GET /workbench/sleep/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
pytestmark = pytest.mark.settings("LAB_WORKBENCH=on")
PORTS = pytest.mark.parametrize(
    "port", ["LAB_HTTP_PORT", pytest.param("LAB_BACKEND_PORT", marks=pytest.mark.full)]
)


def _overload(stack, port, count):
    """Send requests through Nginx or to the server, and do not wait for their answers."""
    settings = stack.settings()
    with ExitStack() as opened:
        for _ in range(count):
            client = socket.create_connection(("127.0.0.1", getattr(settings, port)))
            opened.enter_context(client).sendall(_REQUEST)
        wait_for(lambda: len(_backlog(stack)) >= count - 4, seconds=5, what="the requests")


def _backlog(stack):
    return unanswered(stack.settings().LAB_BACKEND_PORT)


def _states(status):
    return {service["name"]: service["state"] for service in status["services"]}


@contextmanager
def _frozen(stack, service):
    """Stop a service's processes with a signal, so that its port is open and nobody answers."""
    main = psutil.Process(stack._supervision.pid(service))
    processes = [main, *main.children(recursive=True)]
    for process in processes:
        process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            process.send_signal(signal.SIGCONT)


@PORTS
def test_status_does_not_wait_for_a_backlog(lab, stack, port):
    _overload(stack, port, 16)
    status = lab("status", "--json").json
    assert _backlog(stack)
    assert _states(status)["backend"] == "no answer"
    assert _states(status)["nginx"] == "running"
    (detail,) = [each["detail"] for each in status["services"] if each["name"] == "backend"]
    assert "earlier requests are before: `lab up` waits while they become fewer" in detail
    assert "not confirmed: backend does not answer within 3 s" in status["settings"]["note"]
    stack.up(stack.settings())


@PORTS
def test_up_waits_while_a_backlog_shrinks(stack, port, monkeypatch, capsys):
    monkeypatch.setattr(service_start, "_SECONDS", 3)
    monkeypatch.setattr(service_start, "_BUSY_SECONDS", 1)
    _overload(stack, port, 16)
    stack.up(stack.settings())
    assert "backend first answers" in capsys.readouterr().err
    # One worker answers `lab up`; each other may still have one request.
    assert len(_backlog(stack)) < stack.settings().LAB_WORKERS


def test_backlog_that_does_not_shrink_is_an_error(stack, monkeypatch):
    monkeypatch.setattr(service_start, "_SECONDS", 2)
    monkeypatch.setattr(service_start, "_BUSY_SECONDS", 1)
    _overload(stack, "LAB_HTTP_PORT", 8)
    with _frozen(stack, "backend"):
        with pytest.raises(LabError) as error:
            stack.up(stack.settings())
        with pytest.raises(LabError) as of_api:
            reported.wait_for_api(stack.settings(), 2)
    message = str(error.value)
    assert message.startswith("Timed out after 2 s waiting for an answer of backend. ")
    for text in (message, str(of_api.value)):
        assert "earlier requests are before it, and none of them was answered for 2 s" in text
        assert "`lab down`, then `lab up` drops them" in text
    stack.up(stack.settings())


@pytest.mark.parametrize(
    "service",
    ["nginx", *(pytest.param(name, marks=pytest.mark.full) for name in ("backend", "prometheus"))],
)
def test_frozen_service_is_shown_as_one_that_does_not_answer(lab, stack, service):
    with _frozen(stack, service):
        text = lab("status", COLUMNS="200").out
        status = lab("status", "--json").json
    others = {"backend", "nginx", "prometheus", "postgres"} - {service}
    assert _states(status)[service] == "no answer"
    assert {_states(status)[name] for name in others} == {"running"}
    assert f"none within 3 s; see `lab logs {service}`" in text
    stack.up(stack.settings())


@pytest.mark.full
def test_frozen_database_keeps_status_from_nothing(lab, stack):
    with _frozen(stack, "postgres"):
        status = lab("status", "--json").json
    assert status["latency"] is None
    assert _states(status)["nginx"] == "running"
    stack.up(stack.settings())
    assert lab("status", "--json").json["latency"]
