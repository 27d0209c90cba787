"""Growth checks of a soak, on synthetic samples and loads."""

import re
from dataclasses import replace
from types import SimpleNamespace

import psutil
import pytest

from load_lab.errors import LabError
from load_lab.metrics.windows import Window
from load_lab.paths import ROOT
from load_lab.results.result import Result
from load_lab.soak import growth
from load_lab.soak.samples import Sample, Sampler
from load_lab.stack.native.supervision import wait_for
from load_lab.targets.reference import growth as reference
from load_lab.targets.subject import Growth, Running, Stored

_MIB = 1024**2
_HOTEL = reference.growth_of(None, lambda: SimpleNamespace(LAB_NGINX_CACHE="protected")).folders


def _samples(grow=0, count=60):
    """Return samples in which everything grows by `grow` from the first to the last."""
    return [
        Sample(
            at=3.0 * n,
            workers={7: 100 * _MIB + grow * n // count, 8: 90 * _MIB},
            connections=8 + grow * n // count,
            files=40 + grow * n // count,
            threads=12 + grow * n // count,
            folders=dict.fromkeys(_HOTEL, grow * n),
        )
        for n in range(count)
    ]


def _disk_checks(samples):
    return growth.disk_checks(samples, Stored(1000, 180, rows=100), _HOTEL)


def test_constant_samples_pass_every_limit():
    checks = [*growth.process_checks(_samples()), *_disk_checks(_samples())]
    assert all(check.passed for check in checks)


def test_every_growth_is_named():
    growth_bytes = 40 * 1024 * _MIB
    processes = {
        check.what: check.passed for check in growth.process_checks(_samples(growth_bytes))
    }
    assert processes.pop("growth of process 2, MiB")
    assert processes.pop("processes that were replaced")
    assert len(processes) == 4
    assert not any(processes.values())
    assert not any(check.passed for check in _disk_checks(_samples(growth_bytes)))


def _replacements(samples):
    checks = {check.what: check.value for check in growth.process_checks(samples)}
    return checks["processes that were replaced"]


@pytest.mark.parametrize("at", [2, 30, 59], ids=["during warm-up", "in the middle", "at the end"])
def test_replaced_worker_is_counted(at):
    samples = _samples()
    for sample in samples[at:]:
        sample.workers[9] = sample.workers.pop(8)
    assert _replacements(samples) == 1


def test_worker_missing_from_one_sample_is_not_replaced():
    samples = _samples()
    samples[15].workers.pop(8)
    assert _replacements(samples) == 0


def test_process_of_a_single_sample_is_not_replaced():
    """An app may start a program for one request."""
    samples = _samples()
    samples[15].workers[99] = _MIB
    assert _replacements(samples) == 0


def test_app_without_a_known_database_has_no_growth_of_connections():
    samples = [replace(sample, connections=None) for sample in _samples()]
    checks = {check.what: check.passed for check in growth.process_checks(samples)}
    assert "growth of database connections" not in checks
    assert all(checks.values())


def test_threads_and_connections_of_single_requests_are_no_growth():
    samples = _samples()
    samples[-4:] = [replace(each, connections=30, files=90, threads=90) for each in samples[-4:]]
    assert all(check.passed for check in growth.process_checks(samples))


def test_samples_without_workers_have_no_replacement_count():
    assert _replacements([replace(sample, workers={}) for sample in _samples()]) is None


@pytest.mark.parametrize(
    ("samples", "missed", "passed"), [(60, 0, True), (60, 3, True), (60, 4, False), (9, 0, False)]
)
def test_few_samples_fail(samples, missed, passed):
    sampler = SimpleNamespace(samples=_samples(count=samples), missed=missed, rows=100)
    checks = list(growth.sample_checks(sampler, 1000, 180, _HOTEL))
    assert all(check.passed for check in checks) == passed


def test_samples_that_end_before_load_fail():
    sampler = SimpleNamespace(samples=_samples(), missed=0, rows=100)
    violations = [
        check.what for check in growth.sample_checks(sampler, 1000, 200, _HOTEL) if not check.passed
    ]
    assert violations == ["the last look, s into it"]


RUNNING = Running(None, None, None, lambda: {"backend": 1})


def test_sampler_continues_after_failed_sample(monkeypatch):
    """Postgres can be unavailable for a moment while k6 runs for an hour."""
    results = iter([LabError("Postgres does not answer."), psutil.NoSuchProcess(1), *_samples()])

    def sample(_):
        result = next(results)
        if isinstance(result, Exception):
            raise result
        return result

    monkeypatch.setattr(Sampler, "_sample", sample)
    with Sampler(RUNNING, Growth(count_rows=lambda: 5), 0.01) as sampler:
        wait_for(lambda: sampler.samples, seconds=10, what="a sample")
    assert sampler.missed == 2


def test_unavailable_postgres_does_not_hide_load_error():
    # The second count fails, because the iterator is empty.
    counts = iter([5])
    rows = Growth(count_rows=lambda: next(counts))
    with pytest.raises(LabError, match="taken down"), Sampler(RUNNING, rows, 60):
        raise LabError("The stack was taken down.")


def _max_cache_bytes(folder):
    """Return the sum of the template's max_size values, in bytes."""
    text = (ROOT / f"nginx/templates/{folder}/http.conf.template").read_text()
    units = {"m": _MIB, "g": 1024 * _MIB}
    return sum(int(n) * units[unit] for n, unit in re.findall(r"max_size=(\d+)([mg])", text))


def test_folder_limits_match_program_configuration():
    scratch = 64 * _MIB
    assert _max_cache_bytes("cache/basic") + scratch == reference.BASIC_CACHE_BYTES
    assert _max_cache_bytes("page-cache") + scratch == reference.CACHE_BYTES
    text = (ROOT / "postgres/postgresql.conf").read_text()
    (max_gigabytes,) = re.findall(r"^max_wal_size = (\d+)GB", text, re.MULTILINE)
    assert int(max_gigabytes) * 1024 * _MIB * 5 / 4 == reference.LOG_AHEAD_BYTES


def _windows(*broken):
    return [Window(5, 0, 0, 0, 0, 0, 0, None, each) for each in broken]


_LATE = ("late",)
_SUSTAINED = Result(failed=5, requests=10_000, outcome="held", windows=_windows((), _LATE))


@pytest.mark.parametrize(
    ("changed", "statuses", "passed"),
    [
        ({}, {"200": 9995, "503": 5}, True),
        ({"failed": 6}, {"200": 9994, "503": 5}, False),
        ({"failed": 11}, {"200": 9989, "503": 11}, False),
        ({"windows": _windows((), _LATE, _LATE, _LATE)}, {"503": 5}, False),
        ({"windows": _windows((), _LATE, _LATE, (), _LATE)}, {"503": 5}, True),
        ({"windows": []}, {"503": 5}, False),
        ({"outcome": "unrecorded"}, {"503": 5}, False),
        # Without Prometheus the rejected requests are unknown, unless no request failed.
        ({}, {}, False),
        ({"failed": 0}, {}, True),
    ],
)
def test_soak_fails_if_rate_is_not_sustained(changed, statuses, passed):
    checks = list(growth.load_checks(_SUSTAINED.model_copy(update=changed), statuses))
    assert all(check.passed for check in checks) == passed
