"""The result of one run: every metric once, with its label, unit and format.

JSON files, the terminal, reports, claims and charts read metrics from here. A metric is a field of
`Result`; `METRICS` maps the names used in claims and reports to metrics.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from load_lab.load.page_change import PageChange
from load_lab.machine.cpu_use import CpuUse
from load_lab.machine.logged_errors import NONE_LOGGED, LoggedErrors
from load_lab.machine.observation import Signals
from load_lab.machine.processes import server_names
from load_lab.metrics.windows import Window
from load_lab.results.bottleneck import Diagnosis
from load_lab.results.breakpoint import BreakPoint
from load_lab.results.completeness import Completeness
from load_lab.results.formatting import (
    Spread,
    goodput,
    mebibytes,
    median_and_range,
    milliseconds,
    percent,
    rate,
    whole,
)
from load_lab.results.limit import Limit

# The profile of a cell of an experiment that searches a capacity, next to those of k6.
CAPACITY = "capacity"

Outcome = Literal["passed", "failed", "broke", "held", "measured", "unrecorded", "interrupted"]
PercentileSource = Literal["summary", "histograms", "samples"]


@dataclass(frozen=True)
class Metric:
    """Name and format of a metric. `name` and `path` (its place in a result) come from the field; a
    metric of a nested model sets its own name.
    """

    label: str
    unit: str = ""
    form: Callable[[float | None], str] = rate
    name: str = ""
    path: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Return the heading of a column."""
        return f"{self.label}, {self.unit}" if self.unit else self.label

    def of(self, result: "Result") -> float | None:
        """Return the value in a result; None where the run has none."""
        value: Any = result
        for part in self.path:
            value = None if value is None else getattr(value, part)
        return None if value is None else float(value)

    def text(self, values: Spread | None) -> str:
        """Format the median of several repeats, with their range."""
        return median_and_range(values, self.form)


@dataclass(frozen=True)
class ComparedMetric(Metric):
    """A metric by which reports compare cells: "sync `verb` 24.3 `phrase`".

    `full_name` is used in headings, `axis` as the title of an axis. `bounded`: the metric is a
    lower bound if the load generator was the limit.
    """

    full_name: str = ""
    verb: str = "gave"
    phrase: str = ""
    axis: str = ""
    caption: str = ""
    less_is_better: bool = False
    bounded: bool = False


def _percentile(share: int) -> ComparedMetric:
    return ComparedMetric(
        f"p{share}",
        "ms",
        milliseconds,
        full_name=f"Response time, p{share}",
        verb="took",
        phrase=f"ms (p{share})",
        axis=f"response time, p{share} (ms)",
        caption=f"Response time, p{share}: {share} % of the answers took no longer than this.",
        less_is_better=True,
    )


_SUCCESSES = ComparedMetric(
    "successes",
    form=whole,
    full_name="Successful answers",
    phrase="successful answers",
    axis="successful answers",
    caption=("Successful answers: all that came without an error during the load, however late."),
)
_RPS = ComparedMetric(
    "requests/s",
    full_name="Requests per second",
    verb="answered",
    phrase="requests per second",
    axis="requests/s",
    caption="Requests/s: all answers over the length of the load, late and failed ones too.",
    bounded=True,
)
_ANSWERS = ComparedMetric(
    "answers/s",
    full_name="Answers per second",
    phrase="successful answers per second",
    axis="successful answers/s",
    caption="Answers/s: successful answers over the planned length of the load, however late.",
    bounded=True,
)
_GOODPUT = ComparedMetric(
    "goodput",
    "per s",
    goodput,
    full_name="Goodput",
    phrase="answers in time per second",
    axis="goodput (answers in time/s)",
    caption="Goodput: most answers in time per second in any window of 5 s.",
    bounded=True,
)
_MAX_RPS = ComparedMetric(
    "successes/s at most",
    full_name="Most successful answers per second",
    verb="gave at most",
    phrase="successful answers per second",
    axis="successful answers/s, best 5 s",
    caption="Most successful answers per second in any window of 5 s, however late.",
    bounded=True,
)
_CAPACITY = ComparedMetric(
    "capacity",
    "per s",
    name="capacity",
    full_name="Capacity",
    verb="sustained",
    phrase="requests per second",
    axis="capacity (requests/s)",
    caption="Capacity: the highest rate of requests that was sustained within the limits.",
    bounded=True,
)
_WS_DELAY = ComparedMetric(
    "delay p95",
    "ms",
    milliseconds,
    name="ws_delay_p95_ms",
    full_name="From commit to message, p95",
    verb="took",
    phrase="ms from commit to message (p95)",
    axis="commit to message, p95 (ms)",
    caption="From commit to message: 95 % of the WebSockets' messages took no longer than this.",
    less_is_better=True,
)


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)


class Staleness(_Part):
    """Time until bookings became visible, in ms, and the number that did not in time."""

    seen: int
    p50_ms: float
    p95_ms: float
    max_ms: float
    unseen: int


class WebSockets(_Part):
    """Messages that were due to sockets after bookings; delays from commit to receipt."""

    connections: Annotated[int, Metric("held at once", form=whole, name="connections")] = 0
    messages: Annotated[int, Metric("came", form=whole, name="ws_messages")] = 0
    expected: Annotated[int, Metric("messages due", form=whole, name="ws_expected")] = 0
    lost: Annotated[int, Metric("lost", form=whole, name="ws_lost")] = 0
    doubled: Annotated[int, Metric("came twice", form=whole, name="ws_doubled")] = 0
    closed: Annotated[int, Metric("closed early", form=whole, name="ws_closed")] = 0
    delay_p50_ms: Annotated[
        float | None, Metric("delay p50", "ms", milliseconds, name="ws_delay_p50_ms")
    ] = None
    delay_p95_ms: Annotated[float | None, _WS_DELAY] = None
    delay_max_ms: Annotated[
        float | None, Metric("longest delay", "ms", milliseconds, name="ws_delay_max_ms")
    ] = None

    @property
    def delivered(self) -> bool:
        """Return whether each message reached each of its watchers exactly once, and no socket
        closed.
        """
        return bool(self.expected) and not (self.lost or self.doubled or self.closed)


class CapacityResult(_Part):
    """The highest rate within the limits, with its interval of 90 %; `high` is None where the load
    generator was the limit.
    """

    rate: Annotated[float, _CAPACITY]
    low: Annotated[float, Metric("capacity, at least", "per s", name="capacity_low")]
    high: Annotated[float | None, Metric("capacity, at most", "per s", name="capacity_high")] = None
    confirmed: bool = False


class OperationResult(_Part):
    """One operation of a load: its `name` label; `mean_ms` until an operation exceeded a limit.
    `exceeded_after`: seconds into the load when it had exceeded a limit in several windows in a
    row, or for good where it had too few requests for windows; None if it did not. `unstorable`:
    responses that must not be stored although the cache is in front of the operation; `storable`:
    those that could be although it is not.
    """

    name: str
    requests: int
    failed: int = 0
    p95_ms: float | None = None
    mean_ms: float | None = None
    exceeded_after: float | None = None
    unstorable: int = 0
    storable: int = 0


class FailureResult(_Part):
    """The requests that failed by one answer: its status, 0 without a response; `detail` is the
    path of a redirect, or why there was no response. The first came `after` seconds of the load, at
    the planned `rate` (None if that is constant); `operations`: those that failed first come first.
    """

    status: int
    detail: str = ""
    requests: int
    after: float
    rate: float | None = None
    operations: list[str] = []


class ErrorStart(_Part):
    """When the errors that broke a load began: seconds into it, and at how many of the operations.
    `lasting`: none of these succeeded again.
    """

    after: float
    operations: int
    of: int
    lasting: bool


class GeneratorResult(_Part):
    """One of several generators. `requests`: of the load, None where it left no summary;
    `started_after`: seconds after the first one; `cpu`: cores, None where it could not be seen;
    `cpu_limit`: what a pod may use.
    """

    name: str
    requests: int | None
    started_after: float | None = None
    cpu: float | None = None
    cpu_limit: float | None = None


class TargetName(_Part):
    """What was loaded."""

    name: str
    url: str
    # Whether its processes were seen.
    observed: bool = True


class PrometheusRange(_Part):
    """Time range of the load (Unix time), and the queries that read its windows back."""

    start: float
    end: float
    queries: dict[str, str] = {}


class Result(_Part):
    """The result of one load. Rates are per second; the text of a verdict explains them."""

    testid: str = ""
    profile: str = ""
    scenario: str = ""
    # Of the workbench; and which operations of a mix.
    route: str | None = None
    only: str | None = None
    # UTC, in ISO format.
    started: str = ""
    # From the load's first arrival to its last response.
    seconds: Annotated[float, Metric("duration", "s", whole)] = 0.0
    # Seconds into the load when the lab stopped it early; None when it ran to its end.
    stopped_after: Annotated[float | None, Metric("stopped early", "s", whole)] = None
    requests: Annotated[int, Metric("requests", form=whole)] = 0
    successes: Annotated[int, _SUCCESSES] = 0
    failed: Annotated[int, Metric("failed requests", form=whole)] = 0
    # Answered 503 at once by Nginx's cache, because the page could not be built in time.
    refused: Annotated[int, Metric("refused requests", form=whole)] = 0
    retries: Annotated[int | None, Metric("sent again", form=whole)] = None
    # In flight when the load ended, neither successful nor failed; None where k6 waits for all.
    unfinished: Annotated[int | None, Metric("unfinished at stop", form=whole)] = None
    rps: Annotated[float, _RPS] = 0.0
    answers_per_second: Annotated[float | None, _ANSWERS] = None
    # The best window's; `goodput_mean` is the whole load's.
    goodput: Annotated[float, _GOODPUT] = 0.0
    goodput_mean: Annotated[float, Metric("mean goodput", "per s")] = 0.0
    max_rps: Annotated[float | None, _MAX_RPS] = None
    p50_ms: Annotated[float | None, _percentile(50)] = None
    p90_ms: Annotated[float | None, _percentile(90)] = None
    p95_ms: Annotated[float | None, _percentile(95)] = None
    p99_ms: Annotated[float | None, _percentile(99)] = None
    dropped_iterations: Annotated[int, Metric("dropped iterations", form=whole)] = 0
    outcome: Outcome = "measured"
    limited_by: Limit = Limit.NONE
    verdict: str = ""
    break_point: BreakPoint | None = None
    recorded: Completeness | None = None
    staleness: Staleness | None = None
    websockets: WebSockets | None = None
    # Of the profile `capacity`: the other values are those of the load just below it,
    # or just above it if none passed.
    capacity: CapacityResult | None = None
    # Share of CPU time that the hypervisor gave to other guests.
    steal: Annotated[float, Metric("stolen CPU time", "%", percent)] = 0.0
    # Speed of the target's CPUs, see machine/noise.py.
    cpu_speed: Annotated[float | None, Metric("CPU speed", "million turns/s")] = None
    # Their number, and the CPU time by which waking them prolongs work (machine/waking.py).
    target_cpus: int | None = None
    wake_ms: float | None = None
    unit: Literal["requests", "iterations"] | None = None
    failed_ratio: Annotated[float, Metric("failed", "%", percent)] = 0.0
    missing_in_prometheus: Annotated[int | None, Metric("not in Prometheus", form=whole)] = None
    # Response bodies that the backend built, by route.
    builds: dict[str, int] = {}
    # Cache lookups by layer (nginx, redis, local) and outcome.
    cache: dict[str, dict[str, int]] = {}
    # Operations that the cache in front of a target should store, but may not, and why.
    not_cached: dict[str, str] = {}
    # Mean number of CPU cores used by each service, and its CPU time per request.
    services_cpu: dict[str, float] = {}
    cpu_ms_per_request: dict[str, float] = {}
    target: TargetName | None = None
    # Services whose main process was replaced during the load.
    restarted: list[str] = []
    # The first to exceed a limit first, then the slowest.
    by_operation: list[OperationResult] = []
    # Empty for a single generator.
    generators: list[GeneratorResult] = []
    # Of p50 to p99: k6's own; merged histograms, exact to one bucket (10 %); or all samples.
    percentiles_from: PercentileSource = "summary"
    memory_peak_bytes: Annotated[int | None, Metric("memory", "MiB", mebibytes)] = None
    prometheus: PrometheusRange | None = None
    windows: list[Window] = Field(default=[], repr=False)
    cpu: list[CpuUse] = Field(default=[], repr=False)
    # What was seen of the target's parts, and what could not be.
    signals: list[Signals] = Field(default=[], repr=False)
    unseen_signals: list[str] = []
    # Services of the target that are in no CPU time, for certain or perhaps.
    unseen_services: list[str] = []
    # Requests of the load by status; 0: no response.
    statuses: dict[str, int] = {}
    failures: list[FailureResult] = []
    # Of a load that errors broke.
    errors_began: ErrorStart | None = None
    # Requests that Nginx refused itself, by reason.
    rejections: dict[str, int] = {}
    # The most frequent errors in the logs of the server and of Postgres.
    logged_errors: LoggedErrors = NONE_LOGGED
    # "LAB_WORKERS from 2 to 4 after 12 s": `lab set` ran during the load.
    setting_changes: list[str] = []
    # Of a load that ended since its pages turned into others.
    page_change: PageChange | None = None
    # What limited a run that broke.
    bottleneck: Diagnosis | None = None

    @property
    def broke_at(self) -> float | None:
        """Return the sustained rate at the break; None for a run without a break."""
        return self.break_point.rate if self.break_point else None

    @property
    def generator_cpu(self) -> float | None:
        """Return the mean CPU utilization of the generator during the load, 0 to 1."""
        return sum(use.load for use in self.cpu) / len(self.cpu) if self.cpu else None

    @property
    def server_cpu_ms(self) -> float | None:
        """Return the CPU time per request of what answers requests, without its database."""
        used = self.cpu_ms_per_request
        return sum(used[name] for name in server_names(used)) if used else None

    @property
    def lower_bound(self) -> Limit | None:
        """Return why the rates are lower bounds; None when the target was the limit.

        Also None for a constant rate that held: it gives no information about higher rates.
        """
        if self.limited_by in (Limit.GENERATOR, Limit.VIRTUAL_USERS, Limit.OTHERS, Limit.ERRORS):
            return self.limited_by
        if self.recorded and not self.recorded.readable:
            return Limit.UNRECORDED
        return Limit.LOAD if "breakpoint" in self.profile and self.outcome == "held" else None

    def document(self) -> dict[str, Any]:
        """Return the result as JSON data, the time series last."""
        return self.model_dump(mode="json")


def without_series(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document without its time series, for the terminal."""
    return {name: value for name, value in document.items() if name not in _SERIES}


_SERIES = ("windows", "cpu", "signals")


def _metrics_of(model: type[BaseModel], *path: str) -> dict[str, Metric]:
    metrics = {}
    for field, info in model.model_fields.items():
        for metric in info.metadata:
            if isinstance(metric, Metric):
                name = metric.name or field
                metrics[name] = replace(metric, name=name, path=(*path, field))
    return metrics


_DERIVED = {
    "broke_at": Metric("broke at", "per s", name="broke_at", path=("broke_at",)),
    "server_cpu_ms": Metric(
        "CPU", "ms per request", milliseconds, name="server_cpu_ms", path=("server_cpu_ms",)
    ),
    "generator_cpu": Metric(
        "generator CPU", "%", percent, name="generator_cpu", path=("generator_cpu",)
    ),
}
METRICS = {
    **_metrics_of(Result),
    **_metrics_of(WebSockets, "websockets"),
    **_metrics_of(CapacityResult, CAPACITY),
    **_DERIVED,
}
# Metrics by which a report may compare cells.
COMPARED = {name: metric for name, metric in METRICS.items() if isinstance(metric, ComparedMetric)}
