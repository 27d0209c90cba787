"""Prerequisites of the exporters: monitoring role, targets and the backend's metrics."""

import re
import socket
import struct
import time
from dataclasses import replace

import httpx
import psycopg
import pytest

from load_lab.errors import LabError
from load_lab.metrics.prometheus import Prometheus
from load_lab.stack.native import backend, preflight
from load_lab.stack.native.services.exporters import scrape_targets
from load_lab.stack.native.services.start_order import services


def _monitor_connection(stack, database):
    settings = stack.settings()
    return psycopg.connect(
        host="127.0.0.1",
        port=settings.LAB_POSTGRES_PORT,
        user="lab_monitor",
        dbname=database,
        password=(stack._state.secrets / "monitor_password").read_text(),
    )


def test_monitor_role_reads_statistics_but_no_rows(stack):
    with _monitor_connection(stack, "postgres") as connection:
        query = "SELECT query FROM pg_stat_statements"
        texts = {row[0] for row in connection.execute(query)}
        # Including statements of other roles, which ordinary roles cannot see.
        assert any("hotels_" in text for text in texts)
        assert "<insufficient privilege>" not in texts
    with (
        _monitor_connection(stack, "hotel") as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        connection.execute("SELECT * FROM hotels_customer")


def test_monitor_role_is_added_to_existing_data(stack):
    stack.sql(
        "postgres",
        "DROP EXTENSION pg_stat_statements",
        "ALTER ROLE lab_monitor PASSWORD 'another'",
        "REVOKE pg_monitor FROM lab_monitor",
    )
    for _ in range(2):
        backend.load(stack.settings(), stack._state)
    with _monitor_connection(stack, "postgres") as connection:
        (member,) = connection.execute("SELECT pg_has_role('pg_monitor', 'MEMBER')").fetchone()
        assert member
        assert connection.execute("SELECT count(*) FROM pg_stat_statements").fetchone()


@pytest.fixture
def all_services(stack):
    return services(stack.settings(), stack._state)


def test_scrape_targets_have_service_and_instance_labels(stack, all_services):
    targets = scrape_targets(all_services, stack.settings())
    labels = {t["labels"]["instance"]: t["labels"]["service"] for t in targets}
    assert labels["mtail"] == labels["nginx-exporter"] == "nginx"
    assert labels["backend-metrics"] == "backend"
    assert set(labels) < {service.name for service in all_services}


def test_exporter_port_conflict_is_reported_with_its_setting(stack, all_services):
    unused = stack.settings().model_copy(update={"LAB_NGINX_STATUS_PORT": 1})
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        exporter = next(service for service in all_services if service.name == "node-exporter")
        with pytest.raises(LabError, match=rf"{port} \(LAB_EXPORTERS_PORT\)"):
            preflight._check_ports(unused, [replace(exporter, port=port)])


def test_slot_and_settings_metrics_follow_lab_set(lab, stack):
    assert _metric(stack, "lab_worker_slots") == 2
    assignments = ("LAB_SERVER=gunicorn-gthread", "LAB_THREADS=3", "LAB_WORKERS=4", "LAB_DB_POOL=2")
    assert lab("set", *assignments).code == 0
    assert _metric(stack, "lab_worker_slots") == 12
    text = httpx.get(stack.settings().metrics_url).text
    (info,) = re.findall(r"^lab_settings_info{(.+)} 1.0$", text, re.MULTILINE)
    assert 'lab_threads="3"' in info
    assert 'lab_db_pool="2"' in info


@pytest.mark.settings(
    "LAB_SERVER=gunicorn-gthread", "LAB_THREADS=8", "LAB_WORKERS=1", "LAB_DB_POOL=1"
)
def test_waits_for_pooled_connections_are_counted(lab, stack):
    result = lab("k6", "smoke", "--scenario", "detail", "--vus", "8", "--duration", "3s", "--json")
    assert result.code == 0, result.err
    waits = _metric(stack, "lab_db_pool_waits_total")
    assert waits > 0
    assert 0 < _metric(stack, "lab_db_pool_wait_seconds_total") < waits * 5


def _metric(stack, name: str) -> float:
    text = httpx.get(stack.settings().metrics_url).text
    (value,) = re.findall(rf"^{name} (\S+)$", text, re.MULTILINE)
    return float(value)


def test_retried_push_is_stored_after_a_newer_one(stack):
    now = time.time()
    name = f"late_{int(now)}"
    for at in (now, now - 20):
        assert _push(stack.settings().push_url, name, at) == httpx.codes.NO_CONTENT
    prometheus = Prometheus(stack.settings().prometheus_url)
    assert prometheus.instant(f"count_over_time({name}[1m])") == 2


def _push(url: str, name: str, at: float) -> int:
    """Send one sample by remote write: protobuf, in a Snappy block without compression."""
    label = _field(1, _field(1, b"__name__") + _field(2, name.encode()))
    sample = _field(2, b"\x09" + struct.pack("<d", 1) + b"\x10" + _varint(int(at * 1000)))
    body = _field(1, label + sample)
    headers = {"Content-Encoding": "snappy", "X-Prometheus-Remote-Write-Version": "0.1.0"}
    block = _varint(len(body)) + bytes([60 << 2, len(body) - 1]) + body
    return httpx.post(url, content=block, headers=headers).status_code


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    low, rest = value & 127, value >> 7
    return bytes([low | 128]) + _varint(rest) if rest else bytes([low])
