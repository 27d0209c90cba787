"""Resource use of each service; most of it recorded by prometheus/rules/resources.yml."""

from grafana.src.queries.counters import counter_rate
from grafana.src.queries.runs import RUNNING
from grafana.src.queries.selection import LIKE_SERVICES, WINDOW
from load_lab.metrics.queries import REQUESTS, load, rate, total

CPU = "service:cpu_cores:rate"
CPU_LIMIT = "service:cpu_cores:limit"
SIDE = "service:side:info"
MEMORY = "service:memory_bytes"
MEMORY_LIMIT = "service:memory_bytes:limit"
NETWORK = "service:network_bytes:rate"
DISK = "service:disk_bytes:rate"
THROTTLED = "service:cpu_throttled:ratio"

# Services that measure: one line in the panels.
_MEASURING = (
    "generator-metrics|prometheus|push-gate|grafana|alloy|docker-socket|(.+-)?exporters?|"
    "backend-metrics|mtail"
)
# Services that contribute to a response.
_TARGET_SERVICES = "nginx|backend|redis|postgres"


def of_services(recorded: str, matchers: str = "") -> str:
    """Return a recorded metric by service; those that measure as one."""
    measuring = f'sum({recorded}{{service=~"{_MEASURING}"{matchers}}})'
    others = f'{recorded}{{service!~"{_MEASURING}"{matchers}}}'
    return f'{others} or label_replace({measuring}, "service", "measuring", "", "")'


def cpu_per_request(tests: str) -> str:
    """Return CPU seconds per response, for each service of the target, while a test runs."""
    responses = counter_rate(REQUESTS, load(tests), window=LIKE_SERVICES)
    ran = f"({RUNNING}{{{tests}}} and {RUNNING} offset {LIKE_SERVICES.duration})"
    cores = f'{CPU}{{service=~"{_TARGET_SERVICES}"}}'
    return f"{cores} / on () group_left () ({responses} > 0) and on () {ran}"


# CPUs of each side, which its services share.
SIDE_CPUS = "max by (side) (lab_cpus)"


def cpu_quotas() -> str:
    """Return the quotas of containers, where they are below the CPUs of their side."""
    quotas = f'{CPU_LIMIT}{{service=~"{_TARGET_SERVICES}|load"}}'
    with_side = f"{quotas} * on (service) group_left (side) {SIDE}"
    return f"{with_side} < on (side) group_left () {SIDE_CPUS}"


def without_quota() -> str:
    """Return 0 if no container has a quota, so that the panel shows it."""
    return f"0 * group({CPU}) unless on () {THROTTLED}"


def select_direction(recorded: str, direction: str) -> str:
    return f'{recorded}{{direction="{direction}"}}'


def disk(direction: str) -> str:
    bytes_ = of_services(DISK, f',direction="{direction}"')
    return f"({bytes_}) > 0"


_SMALL_SHARE = 0.005


def host_cpu() -> str:
    """Return the machine's CPU time by mode, as a share of all CPUs, without small ones."""
    seconds = rate("node_cpu_seconds_total", 'service="host",mode!="idle"', WINDOW)
    cpus = 'count(node_cpu_seconds_total{service="host",mode="idle"})'
    return f"{total(seconds, 'mode')} / on () group_left () {cpus} > {_SMALL_SHARE}"


def pressure(resource: str) -> str:
    """Return the share of time in which at least one process waited for the resource, unless it is
    small.
    """
    counter = f'node_pressure_{resource}_waiting_seconds_total{{service="host"}}'
    return f"rate({counter}[{WINDOW}]) > {_SMALL_SHARE}"
