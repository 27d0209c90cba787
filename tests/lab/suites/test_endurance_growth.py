"""Growth checks of a soak, on synthetic samples and loads."""

import re
from dataclasses import replace
from types import SimpleNamespace

import psutil
import pytest

from lab.analysis.result import Result
from lab.analysis.windows import Window
from lab.errors import LabError
from lab.paths import ROOT
from lab.stack.native.supervision import wait_for
from lab.suites.soak import growth
from lab.suites.soak.watch import Look, Watch

_MIB = 1024**2
_FOLDERS = ("cache", "log ahead", "tables", "logs", "metrics")


def _looks(grow=0, count=60):
    """Return samples in which everything grows by `grow` from the first to the last."""
    return [
        Look(
            at=3.0 * n,
            workers={7: 100 * _MIB + grow * n // count, 8: 90 * _MIB},
            connections=8 + grow * n // count,
            files=40 + grow * n // count,
            folders=dict.fromkeys(_FOLDERS, grow * n),
        )
        for n in range(count)
    ]


def _on_disk(looks):
    return growth.of_disk(looks, 100, 1000, 180, "protected")


def test_constant_samples_pass_every_limit():
    figures = [*growth.of_processes(_looks()), *_on_disk(_looks())]
    assert all(figure.kept for figure in figures)


def test_every_growth_is_named():
    grown = 40 * 1024 * _MIB
    processes = {figure.what: figure.kept for figure in growth.of_processes(_looks(grown))}
    assert processes.pop("growth of worker 2, MiB")
    assert processes.pop("workers that were replaced")
    assert len(processes) == 3
    assert not any(processes.values())
    assert not any(figure.kept for figure in _on_disk(_looks(grown)))


def _replaced(looks):
    figures = {figure.what: figure.value for figure in growth.of_processes(looks)}
    return figures["workers that were replaced"]


@pytest.mark.parametrize("at", [2, 30, 59], ids=["while it warms", "in between", "at last"])
def test_replaced_worker_is_counted(at):
    looks = _looks()
    for look in looks[at:]:
        look.workers[9] = look.workers.pop(8)
    assert _replaced(looks) == 1


def test_worker_missing_from_one_sample_is_not_replaced():
    looks = _looks()
    looks[15].workers.pop(8)
    assert _replaced(looks) == 0


def test_samples_without_workers_have_no_replacement_count():
    assert _replaced([replace(look, workers={}) for look in _looks()]) is None


@pytest.mark.parametrize(
    ("looks", "missed", "kept"), [(60, 0, True), (60, 3, True), (60, 4, False), (9, 0, False)]
)
def test_watch_with_few_samples_fails(looks, missed, kept):
    watch = SimpleNamespace(looks=_looks(count=looks), missed=missed, bookings=100)
    figures = list(growth.of_looks(watch, 1000, 180, "protected"))
    assert all(figure.kept for figure in figures) == kept


def test_watch_that_ended_before_load_fails():
    watch = SimpleNamespace(looks=_looks(), missed=0, bookings=100)
    broken = [each.what for each in growth.of_looks(watch, 1000, 200, "protected") if not each.kept]
    assert broken == ["the last look, s into it"]


ENGINE = SimpleNamespace(pids=lambda: {"backend": 1})


def test_watch_continues_after_failed_sample(monkeypatch):
    """Postgres can be unavailable for a moment while k6 runs for an hour."""
    found = iter([LabError("Postgres does not answer."), psutil.NoSuchProcess(1), *_looks()])

    def look(_):
        each = next(found)
        if isinstance(each, Exception):
            raise each
        return each

    monkeypatch.setattr(Watch, "_look", look)
    monkeypatch.setattr(Watch, "_booked", lambda _: 5)
    with Watch(ENGINE, None, 0.01) as watch:
        wait_for(lambda: watch.looks, seconds=10, what="a look")
    assert watch.missed == 2


def test_unavailable_postgres_does_not_hide_load_error(monkeypatch):
    # The second count fails, because the iterator is empty.
    counts = iter([5])
    monkeypatch.setattr(Watch, "_booked", lambda _: next(counts))
    with pytest.raises(LabError, match="taken down"), Watch(ENGINE, None, 60):
        raise LabError("The stack was taken down.")


def _most_cached(mode):
    """Return the sum of the template's max_size values, in bytes."""
    text = (ROOT / f"nginx/templates/cache/{mode}/http.conf.template").read_text()
    units = {"m": _MIB, "g": 1024 * _MIB}
    return sum(int(n) * units[unit] for n, unit in re.findall(r"max_size=(\d+)([mg])", text))


def test_folder_limits_match_program_configuration():
    scratch = 64 * _MIB
    assert _most_cached("basic") + scratch == growth.BASIC_CACHE_BYTES
    assert _most_cached("protected") + scratch == growth.CACHE_BYTES
    text = (ROOT / "postgres/postgresql.conf").read_text()
    (most,) = re.findall(r"^max_wal_size = (\d+)GB", text, re.MULTILINE)
    assert int(most) * 1024 * _MIB * 5 / 4 == growth.LOG_AHEAD_BYTES


def _windows(*broken):
    return [Window(5, 0, 0, 0, 0, 0, 0, None, each) for each in broken]


_LATE = ("late",)
_HELD = Result(failed=5, requests=10_000, outcome="held", windows=_windows((), _LATE))


@pytest.mark.parametrize(
    ("changed", "statuses", "kept"),
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
def test_soak_fails_if_rate_is_not_sustained(changed, statuses, kept):
    figures = list(growth.of_load(_HELD.model_copy(update=changed), statuses))
    assert all(figure.kept for figure in figures) == kept
