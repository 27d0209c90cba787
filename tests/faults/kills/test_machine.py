"""Memory runs out, or another program takes the port of a stopped service."""

import os
import socket

import httpx
import psutil
import pytest

from load_lab.paths import current_state
from load_lab.stack.native.services.start_order import services
from tests.faults.kills.catalogue import SERVICES
from tests.faults.kills.killed import Clients, kill_process, lost_bookings

# The other services have one process, which test_kills.py kills.
_WITH_CHILDREN = ("postgres", "backend", "backend-metrics", "nginx")
_WITH_PORT = tuple(name for name in SERVICES if name not in ("supervisord", "mtail"))


@pytest.mark.parametrize("service", _WITH_CHILDREN)
def test_service_survives_the_kill_of_its_largest_process(service, lab, stack):
    """The kernel kills it when memory runs out."""
    assert lab("up").code == 0
    clients = Clients(stack.settings().target_url)
    clients.book(3)
    largest = _largest_process(stack.pids()[service])
    with clients.booking():
        kill_process(largest)
    result = lab("up")
    assert result.code == 0, result.err
    assert lost_bookings(stack, clients.acknowledged) == set()
    clients.book()


def _largest_process(pid):
    master = psutil.Process(pid)
    family = [master, *master.children(recursive=True)]
    return max(family, key=lambda process: process.memory_full_info().uss)


@pytest.mark.parametrize("service", _WITH_PORT)
def test_taken_port_is_named_and_up_repairs_once_it_is_free(service, lab, stack):
    assert lab("up").code == 0
    (port,) = [s.port for s in services(stack.settings(), current_state()) if s.name == service]
    stack._supervision.stop_service(service)
    with socket.socket() as other_program:
        other_program.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other_program.bind(("127.0.0.1", port))
        other_program.listen()
        result = lab("up")
        assert result.is_one_message(1)
        assert f"(process {os.getpid()}) listens on its port {port}." in result.err
    result = lab("up")
    assert result.code == 0, result.err
    assert httpx.get(f"{stack.settings().target_url}/api/hotel/", timeout=10).status_code == 200
