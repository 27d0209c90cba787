"""The names of k6's metrics in Prometheus, and their PromQL, for the lab and for the dashboards.

k6's remote write adds the prefix k6_, and the suffix _total to counters and _seconds to times.

`runs` are label matchers: of one run (`one_run`), or of those that a dashboard selects. A `window`
is a duration in PromQL, such as 10s. Without `by`, an expression is one sum.
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
# Of HTML answers, a sample: k6/lib/pages.js.
PAGE_LENGTH = "k6_lab_page_characters"
# By status and path, of unexpected redirects.
REDIRECTS = "k6_lab_redirects_total"
CACHE_STATUS = "k6_lab_cache_status_total"
CACHE_DURATION = "k6_lab_cache_duration_seconds"
STALENESS = "k6_lab_staleness_seconds"
STALENESS_UNSEEN = "k6_lab_staleness_unseen_total"

# Requests of setup() are not part of the load.
LOAD_ONLY = 'name!~"setup_.*"'


def one_run(testid: str) -> str:
    """Return the label matcher of a run."""
    return f'testid="{testid}"'


def load(runs: str) -> str:
    """Return the label matchers of the runs' load."""
    return f"{runs},{LOAD_ONLY}"


def failed(runs: str) -> str:
    """Return the label matchers of the load's unexpected and missing responses."""
    return f'{load(runs)},expected_response="false"'


def rate(metric: str, matchers: str, window: str) -> str:
    return f"rate({metric}{{{matchers}}}[{window}])"


def total(expression: str, by: str = "") -> str:
    return f"sum by ({by}) ({expression})" if by else f"sum({expression})"


def percentile_of(histograms: str, quantile: float, by: str = "") -> str:
    """Return a percentile of native histograms, accurate to one bucket (10 %)."""
    return f"histogram_quantile({quantile}, {total(histograms, by)})"


def mean_of(histograms: str, by: str) -> str:
    """Return the mean of native histograms, which is exact. Debian's Prometheus 2.42 has no
    histogram_avg.
    """
    summed = total(histograms, by)
    return f"histogram_sum({summed}) / histogram_count({summed})"


def requests(matchers: str, by: str = "") -> str:
    """Return the requests so far. k6 pushes a series only when it counted something, and marks it
    stale at the end of the run.
    """
    return total(f"last_over_time({REQUESTS}{{{matchers}}}[1d])", by)


def cache_statuses(runs: str, status: str) -> str:
    """Return the load's responses with an X-Cache-Status so far, by operation."""
    matchers = f'{load(runs)},cache_status="{status}"'
    return total(f"last_over_time({CACHE_STATUS}{{{matchers}}}[1d])", "name")


def counters(runs: str) -> dict[str, str]:
    """Return the selectors of the counters behind a run's windows, by meaning: good and bad
    responses, successful responses within the limit, and dropped iterations (no free virtual
    user).
    """
    return {
        "good": f'{REQUESTS}{{{load(runs)},expected_response="true"}}',
        "bad": f"{REQUESTS}{{{failed(runs)}}}",
        "in_time": f"{IN_TIME}{{{load(runs)}}}",
        "dropped": f"{ITERATIONS_DROPPED}{{{runs}}}",
    }


def durations(runs: str) -> str:
    """Return the selector of the histograms of response times."""
    return f"{DURATION}{{{load(runs)}}}"


def durations_of_mix(runs: str) -> str:
    """Return the selector of the histograms that a mix has of all its operations together."""
    return f"{MIX_DURATION}{{{runs}}}"


def percentile(runs: str, quantile: float, window: str) -> str:
    """Return a percentile of response times in seconds. A mix of hundreds of operations has its own
    series for it.
    """
    of_mixes = total(rate(MIX_DURATION, runs, window), "testid")
    of_others = total(rate(DURATION, load(runs), window), "testid")
    return percentile_of(f"{of_mixes} or {of_others}", quantile)


def percentile_of_successes(runs: str, quantile: float, window: str) -> str:
    """Like `percentile`, for expected responses only."""
    matchers = f'{load(runs)},expected_response="true"'
    return percentile_of(rate(DURATION, matchers, window), quantile)


def percentile_by_operation(runs: str, quantile: float, window: str) -> str:
    """Like `percentile`, by `name`."""
    return percentile_of(rate(DURATION, load(runs), window), quantile, "name")


def error_ratio_by_operation(runs: str, window: str) -> str:
    """Return the share of failed requests, by `name`; an operation without a failure has none."""
    failures = total(rate(REQUESTS, failed(runs), window), "name")
    return f"{failures} / {total(rate(REQUESTS, load(runs), window), 'name')}"


def error_ratio_so_far_by_operation(runs: str) -> str:
    """Like `error_ratio_by_operation`, of all requests so far."""
    return f"{requests(failed(runs), 'name')} / {requests(load(runs), 'name')}"


def queries(testid: str, window: str) -> dict[str, str]:
    """Return every query behind a run's windows, by result."""
    runs = one_run(testid)
    return {**counters(runs), "p95_seconds": percentile(runs, 0.95, window)}


def cores_of_pods(namespace: str, test_run: str, seconds: int) -> str:
    """Return the cores that each generator's pod used at most in a minute of the last `seconds`,
    where Prometheus has the kubelet's metrics; `test_run` is the load's name there.
    """
    pods = f'namespace="{namespace}",pod=~"{test_run}-[0-9]+-.+",container!=""'
    cores = total(rate("container_cpu_usage_seconds_total", pods, "1m"), "pod")
    return f"max_over_time({cores}[{seconds}s:15s])"


def start(runs: str) -> str:
    """Return the start of a run's load, in Unix time."""
    return f"min({SCENARIO_START}{{{runs}}})"


def page_lengths(runs: str) -> str:
    """Return the selector of the sampled pages, by name and login."""
    return f"{PAGE_LENGTH}{{{runs}}}"


def failed_requests(runs: str) -> str:
    """Return the selector of the load's failed requests, by name, status and error_code."""
    return f"{REQUESTS}{{{failed(runs)}}}"


def redirects(runs: str) -> str:
    """Return the selector of the unexpected redirects, by status and path."""
    return f"{REDIRECTS}{{{runs}}}"


def heartbeat(runs: str) -> str:
    """Return the selector of the series that k6 pushes every second, with or without responses."""
    return f"{VIRTUAL_USERS}{{{runs}}}"
