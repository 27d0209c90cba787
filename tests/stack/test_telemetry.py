"""Every signal of the table arrives while k6 runs; and what the alerts say of a healthy stack."""

import pytest

from lab.analysis.prometheus import Prometheus
from tests.support.telemetry import TABLE, arrivals


@pytest.fixture(scope="module")
def prometheus(watched):
    return Prometheus(watched.url)


@pytest.fixture(scope="module")
def arrived(watched):
    """Which signals arrived within 60 s of the beginning of a run, and after how many seconds."""
    return watched.arrived


@pytest.mark.parametrize("signal", TABLE, ids=str)
def test_the_signal_arrives_within_a_minute(signal, arrived):
    if "native" in signal.missing:
        pytest.skip(f"{signal}: {signal.missing['native']}")
    assert signal in arrived, f"{signal} is missing in Prometheus: {signal.query}"


def test_a_signal_that_no_one_sends_is_missed(prometheus):
    from tests.support.telemetry import Signal

    assert arrivals(prometheus, [Signal("x", "y", "no_such_metric")], within=1) == {}


def test_nothing_is_alarming_about_a_stack_that_bears_its_load(arrived, prometheus):
    names = "BackendDown|ServiceDown|ScrapeTargetDown|NoContainerSeries|ErrorRatio"
    assert prometheus.instant(f'ALERTS{{alertname=~"{names}",alertstate="firing"}}') is None
