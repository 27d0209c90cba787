"""Names of k6's metrics in Prometheus, and the queries that read a run back from them.

k6's remote write adds the prefix k6_, and the suffix _total to counters and _seconds to times.
"""

# Label of the series of one of several generators, as k6-operator names it.
GENERATOR = "instance_id"

REQUESTS = "k6_http_reqs_total"
DURATION = "k6_http_req_duration_seconds"
ITERATIONS_DROPPED = "k6_dropped_iterations_total"
# Pushed every second from k6's start to its end, with or without responses.
VIRTUAL_USERS = "k6_vus"
VIRTUAL_USERS_MAX = "k6_vus_max"
# A gauge, cumulative since the run's start: the share of checks that passed.
CHECKS = "k6_checks_rate"
# Custom metrics: metrics.js of k6/lib and of the reference app.
IN_TIME = "k6_lab_answers_in_time_total"
TARGET_RATE = "k6_lab_target_rate"
SCENARIO_START = "k6_lab_scenario_start_seconds"
# Of the scenario replay: all operations in one series.
MIX_DURATION = "k6_lab_duration_seconds"
CACHE_STATUS = "k6_lab_cache_status_total"
CACHE_DURATION = "k6_lab_cache_duration_seconds"
STALENESS = "k6_lab_staleness_seconds"
STALENESS_UNSEEN = "k6_lab_staleness_unseen_total"

# Requests of setup() are not part of the load.
LOAD_ONLY = 'name!~"setup_.*"'


def selector(testid: str) -> str:
    """Return the label matchers of a run's load."""
    return f'testid="{testid}",{LOAD_ONLY}'


def _last_value(counter: str, matchers: str) -> str:
    """Return the query of a counter's last value. k6 pushes a series only when it counted
    something, and marks it stale at the end of the run.
    """
    return f"last_over_time({counter}{{{matchers}}}[1d])"


def counters(testid: str) -> dict[str, str]:
    """Return the selectors of the counters behind a run's windows, by meaning: good and bad
    responses, successful responses within the limit, and dropped iterations (no free virtual
    user).
    """
    load = selector(testid)
    return {
        "good": f'{REQUESTS}{{{load},expected_response="true"}}',
        "bad": f'{REQUESTS}{{{load},expected_response="false"}}',
        "in_time": f"{IN_TIME}{{{load}}}",
        "dropped": f'{ITERATIONS_DROPPED}{{testid="{testid}"}}',
    }


def percentile(testid: str, quantile: float, seconds: int) -> str:
    """Return the query of a response time percentile over the last `seconds`; in seconds, accurate
    to one bucket (10 %). A mix of hundreds of operations has its own series for it.
    """
    of_mix = f'sum(rate({MIX_DURATION}{{testid="{testid}"}}[{seconds}s]))'
    rate = f"sum(rate({DURATION}{{{selector(testid)}}}[{seconds}s]))"
    return f"histogram_quantile({quantile}, {of_mix} or {rate})"


def durations(testid: str) -> str:
    """Return the selector of the histograms of response times."""
    return f"{DURATION}{{{selector(testid)}}}"


def durations_of_mix(testid: str) -> str:
    """Return the selector of the histograms that a mix has of all its operations together."""
    return f'{MIX_DURATION}{{testid="{testid}"}}'


def percentile_of_successes(testid: str, quantile: float, seconds: int) -> str:
    """Like `percentile`, for expected responses only."""
    matchers = f'{selector(testid)},expected_response="true"'
    return f"histogram_quantile({quantile}, sum(rate({DURATION}{{{matchers}}}[{seconds}s])))"


def requests_by_status(testid: str) -> str:
    """Return the query of the requests so far, by `status`; status 0 means no response."""
    return f"sum by (status) ({_last_value(REQUESTS, selector(testid))})"


def requests_by_operation(testid: str) -> str:
    """Return the query of the requests so far, by `name`."""
    return f"sum by (name) ({_last_value(REQUESTS, selector(testid))})"


def failures_by_operation(testid: str) -> str:
    """Return the query of the failed requests so far, by `name`."""
    failed = f'{selector(testid)},expected_response="false"'
    return f"sum by (name) ({_last_value(REQUESTS, failed)})"


def percentile_by_operation(testid: str, quantile: float, seconds: int) -> str:
    """Like `percentile`, by `name`."""
    rate = f"sum by (name) (rate({DURATION}{{{selector(testid)}}}[{seconds}s]))"
    return f"histogram_quantile({quantile}, {rate})"


def error_ratio_by_operation(testid: str, seconds: int) -> str:
    """Return the query of the share of failed requests in the last `seconds`, by `name`; nothing
    for an operation without a failure.
    """
    load = selector(testid)
    failed = f'sum by (name) (rate({REQUESTS}{{{load},expected_response="false"}}[{seconds}s]))'
    return f"{failed} / sum by (name) (rate({REQUESTS}{{{load}}}[{seconds}s]))"


def error_ratio_so_far_by_operation(testid: str) -> str:
    """Like `error_ratio_by_operation`, of all requests so far."""
    return f"{failures_by_operation(testid)} / {requests_by_operation(testid)}"


def queries(testid: str, seconds: int) -> dict[str, str]:
    """Return every query behind a run's windows, by result."""
    return {**counters(testid), "p95_seconds": percentile(testid, 0.95, seconds)}


def percentile_so_far_by_operation(testid: str, quantile: float) -> str:
    """Return the query of a percentile of all responses so far, by `name`, while the load runs."""
    return f"histogram_quantile({quantile}, sum by (name) ({DURATION}{{{selector(testid)}}}))"


def requests_of_load(testid: str) -> str:
    """Return the query of all requests of a run except setup's."""
    return f"sum({_last_value(REQUESTS, selector(testid))})"


def requests_of_whole_run(testid: str) -> str:
    """Return the query of all requests of a run, setup included, as in k6's own summary."""
    matchers = f'testid="{testid}"'
    return f"sum({_last_value(REQUESTS, matchers)})"


def cores_of_pods(namespace: str, load: str, seconds: int) -> str:
    """Return the query of the cores that each generator's pod used at most in a minute of the last
    `seconds`, where Prometheus has the kubelet's metrics; `load` is the name of its TestRun.
    """
    pods = f'namespace="{namespace}",pod=~"{load}-[0-9]+-.+",container!=""'
    rate = f"sum by (pod) (rate(container_cpu_usage_seconds_total{{{pods}}}[1m]))"
    return f"max_over_time({rate}[{seconds}s:15s])"


def start(testid: str) -> str:
    """Return the query of the start of a run's load, in Unix time."""
    return f'min({SCENARIO_START}{{testid="{testid}"}})'


def heartbeat(testid: str) -> str:
    """Return the selector of the series that k6 pushes every second, with or without responses."""
    return f'{VIRTUAL_USERS}{{testid="{testid}"}}'
