"""Metrics that the metrics server adds to the workers' counters."""

import os
import socket

import pytest
from observability.collectors import AcceptQueue, ActiveSettings, PinnedCpus
from observability.pool_waits import ExportedCounts
from prometheus_client import REGISTRY, CollectorRegistry


def _value(collector, name, labels=None):
    registry = CollectorRegistry()
    registry.register(collector)
    return registry.get_sample_value(name, labels or {})


@pytest.mark.parametrize(
    ("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::")]
)
def test_accept_queue_counts_connections_waiting_for_accept(family, host):
    with socket.socket(family) as server:
        server.bind((host, 0))
        server.listen(8)
        port = server.getsockname()[1]
        name = "lab_accept_queue_connections"
        assert _value(AcceptQueue(port), name) == 0
        clients = [socket.create_connection(("localhost", port)) for _ in range(3)]
        assert _value(AcceptQueue(port), name) == 3
        server.accept()[0].close()
        assert _value(AcceptQueue(port), name) == 2
        for client in clients:
            client.close()


def test_accept_queue_has_no_value_without_listening_socket(tmp_path):
    assert _value(AcceptQueue(1, tmp_path), "lab_accept_queue_connections") is None
    assert _value(AcceptQueue(1), "lab_accept_queue_connections") is None


def test_settings_are_read_at_each_scrape(tmp_path, monkeypatch):
    file = tmp_path / "settings.env"
    monkeypatch.setenv("BACKEND_SETTINGS_FILE", str(file))

    def labels():
        (info,) = ActiveSettings().collect()
        return info.samples[0].labels if info.samples else None

    # The file does not exist yet, or `lab down` deleted it.
    assert labels() is None
    file.write_text("LAB_DETAIL=fast\n")
    assert (labels()["lab_detail"], labels()["lab_db_pool"]) == ("fast", "off")
    file.write_text("LAB_DETAIL=naive\n")
    assert labels()["lab_detail"] == "naive"
    file.write_text("LAB_DETAIL=quick\n")
    assert labels() is None


def test_settings_are_one_info_series(monkeypatch):
    (info,) = ActiveSettings().collect()
    assert [(s.name, s.value) for s in info.samples] == [("lab_settings_info", 1)]


def test_unpinned_side_has_all_cpus(monkeypatch):
    monkeypatch.setenv("LAB_TARGET_CPUS", "0-2,5")
    monkeypatch.setenv("LAB_LOAD_CPUS", "")
    assert _value(PinnedCpus(), "lab_cpus", {"side": "target"}) == 4
    assert _value(PinnedCpus(), "lab_cpus", {"side": "load"}) == os.cpu_count()


def test_waits_for_a_pooled_connection_are_counted_once():
    from psycopg_pool import ConnectionPool, PoolTimeout

    counts, names = ExportedCounts(), ("lab_db_pool_waits_total", "lab_db_pool_wait_seconds_total")
    before = [REGISTRY.get_sample_value(name) for name in names]
    # The pool never gets a connection, so a request waits until its timeout.
    with ConnectionPool("host=127.0.0.1 port=1", min_size=0, max_size=1, open=False) as pool:
        with pytest.raises(PoolTimeout):
            pool.getconn(timeout=0.05)
        for _ in range(2):
            counts.update(pool, pool.get_stats())
    waits, seconds = (REGISTRY.get_sample_value(n) - b for n, b in zip(names, before, strict=True))
    assert waits == 1
    assert 0.05 <= seconds < 1


def test_new_pool_counts_from_zero():
    counts = ExportedCounts()
    before = REGISTRY.get_sample_value("lab_db_pool_waits_total")
    counts.update("first", {"requests_queued": 5})
    counts.update("second", {"requests_queued": 2})
    assert REGISTRY.get_sample_value("lab_db_pool_waits_total") - before == 7
