"""Running services without CPU or memory series are reported."""

from contextlib import contextmanager

from load_lab.metrics.missing_series import find_missing_series, wait_for_series
from load_lab.stack.engine import ServiceStatus
from load_lab.stack.native.supervision import wait_for

COLLECTOR = "process-exporter"


def test_every_service_of_a_healthy_stack_has_its_series(stack):
    missing = wait_for_series(stack.services(), stack.settings())
    assert (bool(missing), missing.text) == (False, "")


def test_service_without_series_is_named(stack):
    services = [*stack.services(), ServiceStatus("websocket-proxy", "running")]
    missing = find_missing_series(services, stack.settings())
    assert missing.cpu == missing.memory == ("websocket-proxy",)
    assert "no CPU series of websocket-proxy and no memory series of" in missing.text


def test_stopped_collector_and_stopped_prometheus_are_reported(stack, lab):
    with _stopped(stack, COLLECTOR):
        missing = lab("status", "--json").json["missing_series"]
        assert "Nothing reads CPU and memory" in missing["text"]
    with _stopped(stack, "prometheus"):
        assert "Not measured whole: Prometheus at" in lab("status").out


@contextmanager
def _stopped(stack, service):
    supervision = stack._supervision
    supervision.stop_service(service)
    try:
        yield
    finally:
        supervision.start_service(service)
        wait_for(lambda: supervision.states()[service] == "running", seconds=30, what=service)
