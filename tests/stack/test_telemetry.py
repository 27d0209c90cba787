"""Every signal of the table arrives during a k6 run, and a healthy stack fires no alert."""

import pytest

from load_lab.metrics.prometheus import Prometheus
from tests.support.telemetry import TABLE, arrivals


@pytest.fixture(scope="module")
def prometheus(telemetry_run):
    return Prometheus(telemetry_run.url)


@pytest.fixture(scope="module")
def signals(telemetry_run):
    """Return the signals that arrived within 60 s of a run's start, and after how many seconds."""
    return telemetry_run.arrivals


@pytest.mark.parametrize("signal", TABLE, ids=str)
def test_signal_arrives_within_a_minute(signal, signals):
    if "native" in signal.missing:
        pytest.skip(f"{signal}: {signal.missing['native']}")
    assert signal in signals, f"{signal} is missing in Prometheus: {signal.query}"


def test_signal_without_sender_does_not_arrive(prometheus):
    from tests.support.telemetry import Signal

    assert arrivals(prometheus, [Signal("x", "y", "no_such_metric")], within=1) == {}


def test_healthy_stack_fires_no_alert(signals, prometheus):
    names = (
        "BackendDown|ServiceDown|ScrapeTargetDown|NoContainerSeries|ServiceWithoutSeries|ErrorRatio"
    )
    assert prometheus.instant(f'ALERTS{{alertname=~"{names}",alertstate="firing"}}') is None
