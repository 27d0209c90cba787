"""Checks of a soak, on synthetic runs."""

import io

import pytest
from rich.console import Console

from load_lab.errors import UsageError
from load_lab.soak import long_load, wording
from load_lab.soak.limits import memory_checks


@pytest.mark.parametrize(("steal", "has_warning"), [(0.049, False), (0.051, True)])
def test_high_steal_time_is_reported(steal, has_warning):
    result = {"verdict": "held", "requests": 9, "failed": 0, "p50_ms": 1, "p95_ms": 2, "p99_ms": 3}
    options = {"scenario": "journey", "rate": 9, "seconds": 60.0, "limit": None, "bookings": 1}
    document = {**options, "result": result, "figures": [], "files": {}, "steal": steal}
    output = _printed(wording.soak(document))
    assert ("The hypervisor took 5% of the CPU time" in output) == has_warning


def _printed(table):
    console = Console(width=200, file=io.StringIO())
    console.print(table)
    return console.file.getvalue()


def test_unknown_memory_of_service_fails_its_limit():
    passed = {check.what: check.passed for check in memory_checks({"redis": 1})}
    assert passed.pop("memory of redis, MiB")
    assert not any(passed.values())


def test_soak_says_which_capacity_its_rate_is_half_of():
    result = {"verdict": "held", "requests": 9, "failed": 0, "p50_ms": 1, "p95_ms": 2, "p99_ms": 3}
    options = {"scenario": "journey", "rate": 91, "seconds": 60.0, "bookings": 1, "steal": 0.0}
    document = {**options, "result": result, "figures": [], "files": {}}
    text = _printed(
        wording.soak({**document, "limit": {"headline": "181/s (174 to 186), confirmed"}})
    )
    assert "half of the capacity: 181/s (174 to 186), confirmed" in text


@pytest.mark.parametrize("duration", ["", "soon", "59s", "10"])
def test_invalid_soak_duration_is_usage_error(duration):
    with pytest.raises(UsageError, match="--duration"):
        long_load.validate_options("journey", duration, None)


def test_soak_duration_uses_k6_notation():
    assert long_load.validate_options("journey", "30m", 5) == long_load.Options("journey", 1800, 5)
