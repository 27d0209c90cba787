"""Push signals to Prometheus by remote write, as k6 pushes its own metrics.

The format: https://prometheus.io/docs/specs/prw/remote_write_spec/, protobuf in a block of snappy.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache

import cramjam
import httpx

from load_lab.machine.cpu_use import CpuUse
from load_lab.machine.observation import Signals

_HEADERS = {
    "Content-Encoding": "snappy",
    "Content-Type": "application/x-protobuf",
    "X-Prometheus-Remote-Write-Version": "0.1.0",
}
_TIMEOUT_SECONDS = 2
# Prometheus's mark of the end of a series: a NaN of these bits.
_ENDED = struct.pack("<Q", 0x7FF0000000000002)
# Wire types of protobuf.
_VARINT, _FIXED64, _BYTES = 0, 1, 2
# Metrics by the fields of `Signals`: a gauge each, and a label for those with several values.
GAUGES = {
    "in_flight": "lab_signal_requests_in_flight",
    "queued": "lab_signal_accept_queue",
    "cpu": "lab_signal_server_cores",
    "busiest": "lab_signal_busiest_process_cores",
    "waited": "lab_signal_waiting_for_cpu",
    "faults": "lab_signal_major_faults",
    "retransmits": "lab_signal_retransmits",
}
LABELLED = {
    "threads": ("lab_signal_threads", "state"),
    "sessions": ("lab_signal_sessions", "state"),
    "awaited": ("lab_signal_awaited", "dependency"),
    "sent": ("lab_signal_sent_segments", "dependency"),
    "throttled": ("lab_signal_throttled", "service"),
    "killed": ("lab_signal_killed", "service"),
}
# Share of the CPUs of a `side` in use by all programs, as the verdict has it.
CPU_BUSY = "lab_signal_cpu_busy"
# The rate at which a run broke, else 0; the labels have its `outcome`, and the `cause` of a break,
# whose time it has. Then the best goodput, the generator's CPU at the break, and percentiles of all
# response times.
VERDICT = "lab_verdict"
VERDICT_GOODPUT = "lab_verdict_goodput"
VERDICT_GENERATOR_CPU = "lab_verdict_generator_cpu"
VERDICT_PERCENTILES = {p / 100: f"lab_verdict_p{p}_seconds" for p in (50, 95, 99)}


def push(url: str, testid: str, signals: Signals, cpu: Sequence[CpuUse] = ()) -> None:
    """Push a second, and the last sample of the CPUs."""
    _push(url, write_request(testid, signals, cpu))


def push_end(url: str, testid: str, seconds: Sequence[Signals], cpu: Sequence[CpuUse] = ()) -> None:
    """Mark the series as ended, after their last second: without it they stay for 5 minutes."""
    at = int(seconds[-1].at * 1000) + 1
    series = {tuple(labels.items()) for second in seconds for labels, _ in _values(second, cpu)}
    _push(url, b"".join(_of_series(dict(one), _ENDED, testid, at) for one in sorted(series)))


def push_verdict(
    url: str, labels: Mapping[str, str], at: float, values: Mapping[str, float | None]
) -> None:
    """Push the verdict on a run, by metric, at the Unix time of its break or of its end."""
    series = (
        _series({"__name__": name, **labels}, struct.pack("<d", value), int(at * 1000))
        for name, value in values.items()
        if value is not None
    )
    _push(url, b"".join(_field(1, one) for one in series))


def _push(url: str, request: bytes) -> None:
    # A receiver that does not answer is no reason to stop a load.
    with suppress(httpx.HTTPError):
        body = bytes(cramjam.snappy.compress_raw(request))
        _client().post(url, content=body, headers=_HEADERS)


@cache
def _client() -> httpx.Client:
    """Return a client whose connection stays open: to open one each second costs more CPU."""
    return httpx.Client(timeout=_TIMEOUT_SECONDS)


def write_request(testid: str, signals: Signals, cpu: Sequence[CpuUse] = ()) -> bytes:
    """Return a WriteRequest with one sample for each value."""
    at = int(signals.at * 1000)
    return b"".join(
        _of_series(labels, struct.pack("<d", value), testid, at)
        for labels, value in _values(signals, cpu)
    )


def _of_series(labels: Mapping[str, str], value: bytes, testid: str, at: int) -> bytes:
    return _field(1, _series({**labels, "testid": testid}, value, at))


def _values(signals: Signals, cpu: Sequence[CpuUse]) -> Iterator[tuple[dict[str, str], float]]:
    for name, metric in GAUGES.items():
        value = getattr(signals, name)
        if value is not None:
            yield {"__name__": metric}, value
    for name, (metric, label) in LABELLED.items():
        for key, value in getattr(signals, name).items():
            yield {"__name__": metric, label: key}, value
    for use in cpu[-1:]:
        yield {"__name__": CPU_BUSY, "side": "target"}, use.target
        yield {"__name__": CPU_BUSY, "side": "load"}, use.load


def _series(labels: Mapping[str, str], value: bytes, at: int) -> bytes:
    pairs = (
        _field(1, _field(1, name.encode()) + _field(2, text.encode()))
        for name, text in sorted(labels.items())
    )
    sample = _key(1, _FIXED64) + value + _key(2, _VARINT) + _varint(at)
    return b"".join(pairs) + _field(2, sample)


def _field(number: int, content: bytes) -> bytes:
    return _key(number, _BYTES) + _varint(len(content)) + content


def _key(number: int, wire_type: int) -> bytes:
    return _varint(number << 3 | wire_type)


def _varint(number: int) -> bytes:
    parts = []
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*parts, number])
