"""Checks of a soak, on synthetic runs."""

import io

import pytest
from rich.console import Console

from load_lab.errors import UsageError
from load_lab.soak import long_load, wording
from load_lab.soak.limits import memory_checks
from load_lab.targets.reference.growth import MEMORY_LIMITS


@pytest.mark.parametrize(("steal", "has_warning"), [(0.049, False), (0.051, True)])
def test_high_steal_time_is_reported(steal, has_warning):
    result = {"verdict": "held", "requests": 9, "failed": 0, "p50_ms": 1, "p95_ms": 2, "p99_ms": 3}
    options = {"scenario": "journey", "rate": 9, "seconds": 60.0, "limit": None}
    stored = {"rows": {"bookings": 7}, "unseen": ["a database"], "files": {}}
    document = {**options, **stored, "result": result, "figures": [], "steal": steal}
    output = _printed(wording.soak(document))
    assert ("The hypervisor took 5% of the CPU time" in output) == has_warning
    assert "9 requests, 0 failed, 7 bookings; p50" in output
    assert "Not observed: a database" in output


def _printed(table):
    console = Console(width=200, file=io.StringIO())
    console.print(table)
    return console.file.getvalue()


def test_unknown_memory_of_service_fails_its_limit():
    passed = {check.what: check.passed for check in memory_checks(MEMORY_LIMITS, {"redis": 1})}
    assert passed.pop("memory of redis, MiB")
    assert not any(passed.values())


def test_soak_says_which_capacity_its_rate_is_half_of():
    result = {"verdict": "held", "requests": 9, "failed": 0, "p50_ms": 1, "p95_ms": 2, "p99_ms": 3}
    options = {"scenario": "shop", "rate": 91, "seconds": 60.0, "rows": {}, "steal": 0.0}
    document = {**options, "result": result, "figures": [], "files": {}, "unseen": []}
    text = _printed(
        wording.soak({**document, "limit": {"headline": "181/s (174 to 186), confirmed"}})
    )
    assert "half of the capacity: 181/s (174 to 186), confirmed" in text


@pytest.mark.parametrize("duration", ["", "soon", "59s", "10"])
def test_invalid_soak_duration_is_usage_error(duration):
    with pytest.raises(UsageError, match="--duration"):
        long_load.validate_options(duration, None)


def test_soak_duration_uses_k6_notation():
    assert long_load.validate_options("30m", 5) == long_load.Options(1800, 5)
