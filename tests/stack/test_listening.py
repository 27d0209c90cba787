"""Listening addresses match SECURITY.md's table, on running stacks and in the compose files."""

import socket
import subprocess
from pathlib import Path

import psutil
import pytest

from load_lab.paths import State
from load_lab.settings import defaults, running_settings
from load_lab.stack.measuring_services import MONITORED_SERVICES
from load_lab.stack.native.services import grafana
from load_lab.stack.native.supervision import leftovers
from tests.support.compose import config
from tests.support.metrics_ingress import MetricsIngress
from tests.support.security_page import rows

# A loopback address other than 127.0.0.1, present on every Linux.
ELSEWHERE = "127.0.0.2"
TABLE = rows()


def _is_always(row):
    return row.when == "always" or (
        row.setting == "LAB_GRAFANA_PORT" and grafana.find_installation()
    )


def _ports(row, settings):
    """Return the row's ports. Each exporter has one, counted up from the setting's value."""
    first = getattr(settings, row.setting)
    return set(
        range(
            first, first + (len(MONITORED_SERVICES) if row.setting == "LAB_EXPORTERS_PORT" else 1)
        )
    )


def _listening_sockets(state):
    """Return address and port of every socket that a process of the stack listens on."""
    pids = {process.pid for process in leftovers(state)}
    return {
        (connection.laddr.ip, connection.laddr.port)
        for connection in psutil.net_connections("inet")
        if connection.status == "LISTEN" and connection.pid in pids
    }


def _expected_sockets(settings, *open_rows):
    return {
        (settings.LAB_BIND if row.address == "LAB_BIND" else "127.0.0.1", port)
        for row in TABLE
        if "native" in row.engines and (_is_always(row) or row.setting in open_rows)
        for port in _ports(row, settings)
    }


def test_table_lists_every_port_setting_with_its_default():
    settings = {name: value for name, value in defaults().items() if name.endswith("_PORT")}
    assert {row.setting: row.default for row in TABLE} == settings
    assert {row.address for row in TABLE} == {"loopback", "LAB_BIND"}


def test_running_stack_listens_only_on_listed_ports(stack):
    assert _listening_sockets(stack._state) == _expected_sockets(stack.settings())


SCRIPT = """
import { sleep } from 'k6';
export default function () { console.log('started'); sleep(60); }
"""


def test_k6_listens_on_no_port(stack, tmp_path):
    script = tmp_path / "waits.js"
    script.write_text(SCRIPT)
    argv = [*stack.k6(stack.settings(), {}).argv, "run", "--quiet", str(script)]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert any("started" in line for line in process.stderr)
            connections = psutil.Process(process.pid).net_connections()
            assert [each.laddr for each in connections if each.status == "LISTEN"] == []
        finally:
            process.kill()


@pytest.mark.core
@pytest.mark.full
@pytest.mark.parametrize("bind", ["127.0.0.1", "0.0.0.0"])
def test_compose_files_publish_only_listed_ports(bind):
    services = config("docker-compose.yml", LAB_BIND=bind)
    published = {
        (port["host_ip"], port["published"])
        for service in services.values()
        for port in service.get("ports", [])
    }
    # Toxiproxy's port in front of the server.
    delayed = {("127.0.0.1", str(int(defaults()["LAB_TOXIPROXY_PORT"]) + 2))}
    assert published - delayed == {
        (bind if row.address == "LAB_BIND" else "127.0.0.1", row.default)
        for row in TABLE
        if "docker" in row.engines
    }


@pytest.fixture
def public_state(lab, prepared_stack):
    """Start a second stack that other machines can reach."""
    result = lab("up", LAB_BIND="0.0.0.0", **prepared_stack)
    assert result.code == 0, result.err
    yield State(Path(prepared_stack["LAB_STATE_DIR"]))
    assert lab("down", **prepared_stack).code == 0


def _is_reachable(port, host):
    with socket.socket() as probe:
        probe.settimeout(2)
        return probe.connect_ex((host, port)) == 0


def test_lab_bind_opens_only_nginx_and_protected_metrics_ingress(public_state):
    state = public_state
    settings = running_settings(state)
    assert _listening_sockets(state) == _expected_sockets(settings, "LAB_PUSH_PORT")
    ports = {row.setting: next(iter(_ports(row, settings))) for row in TABLE}
    reachable = {name for name, port in ports.items() if _is_reachable(port, ELSEWHERE)}
    assert reachable == {"LAB_HTTP_PORT", "LAB_PUSH_PORT"}
    gate = MetricsIngress(settings, state, ELSEWHERE)
    gate.check_authentication()
    gate.check_forwarding()
