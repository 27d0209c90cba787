"""Reference servers of `lab calibrate`: service-time models, and the record of requests."""

import socket
from itertools import pairwise

import pytest

from load_lab.calibrate.known_server import (
    percentile,
    reference_server,
    reference_values,
    round_trip_ms,
)
from load_lab.calibrate.service_times import ServiceTime
from load_lab.errors import LabError
from load_lab.machine.cpus import usable_cpus

CPUS = ",".join(map(str, usable_cpus()))


# --- Service-time models


def test_queue_answers_at_its_rate_under_any_load():
    model = ServiceTime("queue", 5).model()
    # 300 requests in one second, then one after a pause.
    due = [model.due(10 + number / 300) for number in range(300)]
    assert due[0] == pytest.approx(10.005)
    intervals = [after - before for before, after in pairwise(due)]
    assert intervals == pytest.approx([0.005] * 299)
    assert model.due(20) == pytest.approx(20.005)
    assert ServiceTime("queue", 5).capacity == 200


def test_exponential_times_have_their_mean_and_are_reproducible():
    draws = [ServiceTime("exponential", 50).model().due(0) for _ in range(2)]
    assert draws[0] == draws[1]
    model = ServiceTime("exponential", 50).model()
    ordered = sorted(model.due(7) - 7 for _ in range(20_000))
    assert sum(ordered) / len(ordered) == pytest.approx(0.05, rel=0.03)
    # ln 2 and ln 20 times the mean.
    assert percentile(ordered, 50) == pytest.approx(0.03466, rel=0.05)
    assert percentile(ordered, 95) == pytest.approx(0.1498, rel=0.05)


def test_percentile_is_interpolated_as_in_k6():
    assert percentile([1, 2, 4], 50) == 2
    assert percentile([1, 2, 4], 75) == 3
    assert percentile([1, 2, 4], 100) == 4
    assert percentile([], 95) == 0


# --- Server


def _responses(port, *paths):
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        for path in paths:
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            yield connection.recv(4096)


def test_server_records_only_requests_of_the_load():
    with reference_server(ServiceTime("fixed", 20), CPUS) as server:
        answers = list(_responses(server.port, "/api/hotel/?setup=a", *["/api/hotel/"] * 5))
        round_trip = round_trip_ms(server.port, set(usable_cpus()))
        values = server.stop()
    assert all(answer.startswith(b"HTTP/1.1 200 OK\r\n") for answer in answers)
    assert values.requests == 5
    assert min(values.seconds) >= 0.02
    assert min(values.late) >= 0
    assert values.total_seconds >= 5 * 0.02
    assert len(values.probes) == 150
    assert 0 < values.probe_ms() < round_trip


def test_disconnected_client_is_counted_separately():
    with reference_server(ServiceTime("fixed", 200), CPUS) as server:
        with socket.create_connection(("127.0.0.1", server.port), timeout=5) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert len(list(_responses(server.port, "/", "/"))) == 2
        values = server.stop()
    assert (values.requests, values.cut_off) == (2, 1)


def test_server_records_cpu_time_of_work():
    with reference_server(ServiceTime("work", 4), CPUS) as server:
        assert len(list(_responses(server.port, *["/"] * 5))) == 5
        values = server.stop()
    assert 0.5 < values.work_ms < values.mean_ms * 1.5
    with reference_server(ServiceTime("fixed", 20), CPUS) as server:
        assert len(list(_responses(server.port, "/"))) == 1
        assert server.stop().work_ms < 0.5


def test_server_that_does_not_start_is_one_message():
    with (
        pytest.raises(LabError, match="did not start"),
        reference_server(ServiceTime("slow", 1), CPUS),  # type: ignore[arg-type]
    ):
        pass


# --- Record


def test_best_rate_counts_answers_in_best_five_seconds():
    """The answers of a stall of 0.1 s arrive together at 7.51 s, after the stall."""
    received = [0.5 + number / 100 for number in range(1200)]
    answered = [7.51 if 7.4 <= at < 7.5 else at + 0.005 for at in received]
    empty = {"due": received, "probes": [], "cut_off": 0, "computed": 0.0}
    values = reference_values({**empty, "received": received, "answered": answered})
    assert values.best_rate == pytest.approx((5 * 100 + 10) / 5)


def test_empty_record_gives_zeros():
    empty = {name: [] for name in ("received", "due", "answered", "probes")}
    values = reference_values({**empty, "cut_off": 0, "computed": 0.0})
    assert (values.requests, values.rate, values.milliseconds(95)) == (0, 0, 0)
    assert (values.mean_ms, values.work_ms, values.best_rate) == (0, 0, None)
