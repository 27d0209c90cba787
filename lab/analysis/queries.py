"""The names of k6's metrics in Prometheus, and the queries that read a run back from them.

k6's remote write prefixes k6_, ends counters in _total and times in _seconds.
"""

REQUESTS = "k6_http_reqs_total"
DURATION = "k6_http_req_duration_seconds"
ITERATIONS_DROPPED = "k6_dropped_iterations_total"
# Of each run, pushed every second from k6's start to its end, whatever is answered.
VIRTUAL_USERS = "k6_vus"
VIRTUAL_USERS_MADE = "k6_vus_max"
# A gauge, cumulative since the run's start: the share of checks that passed so far.
CHECKS = "k6_checks_rate"
# From our own scripts: k6/lib/metrics.js.
IN_TIME = "k6_lab_answers_in_time_total"
TARGET_RATE = "k6_lab_target_rate"
SCENARIO_START = "k6_lab_scenario_start_seconds"
CACHE_STATUS = "k6_lab_cache_status_total"
CACHE_DURATION = "k6_lab_cache_duration_seconds"
STALENESS = "k6_lab_staleness_seconds"

# What setup() asks is no part of the load.
LOAD_ONLY = 'name!~"setup_.*"'


def selector(testid: str) -> str:
    """The label matchers of one run's load."""
    return f'testid="{testid}",{LOAD_ONLY}'


def _kept(counter: str, matchers: str) -> str:
    """A counter that stays where it was: k6 pushes a series only when something was counted, and
    ends it with the run."""
    return f"last_over_time({counter}{{{matchers}}}[1d])"


def counters(testid: str) -> dict[str, str]:
    """What selects the counters that a run's windows come from, by what they count: good and bad
    answers, successful ones within the bound, and iterations that found no free virtual user.
    """
    load = selector(testid)
    return {
        "good": f'{REQUESTS}{{{load},expected_response="true"}}',
        "bad": f'{REQUESTS}{{{load},expected_response="false"}}',
        "in_time": f"{IN_TIME}{{{load}}}",
        "dropped": f'{ITERATIONS_DROPPED}{{testid="{testid}"}}',
    }


def percentile(testid: str, quantile: float, seconds: int) -> str:
    """A percentile of the answers of the last `seconds`, in seconds; good to one bucket (10 %)."""
    rate = f"sum(rate({DURATION}{{{selector(testid)}}}[{seconds}s]))"
    return f"histogram_quantile({quantile}, {rate})"


def percentile_of_successes(testid: str, quantile: float, seconds: int) -> str:
    """Like `percentile`, of the answers that were as expected."""
    matchers = f'{selector(testid)},expected_response="true"'
    return f"histogram_quantile({quantile}, sum(rate({DURATION}{{{matchers}}}[{seconds}s])))"


def requests_by_status(testid: str) -> str:
    """Answers so far, by `status`; 0 where there was none."""
    return f"sum by (status) ({_kept(REQUESTS, selector(testid))})"


def queries(testid: str, seconds: int) -> dict[str, str]:
    """Every query that a run's windows come from, by what it gives."""
    return {**counters(testid), "p95_seconds": percentile(testid, 0.95, seconds)}


def percentile_so_far(testid: str, quantile: float, moment: float) -> str:
    """A percentile of all answers of a run's load until `moment` (Unix time), at which it goes on;
    in seconds, good to one bucket (10 %).

    Prometheus 2.42 keeps no histogram in last_over_time.
    """
    histogram = f"{DURATION}{{{selector(testid)}}} @ {moment}"
    return f"histogram_quantile({quantile}, sum({histogram}))"


def requests_of_load(testid: str) -> str:
    """Every request of a run but setup's."""
    return f"sum({_kept(REQUESTS, selector(testid))})"


def requests_of_whole_run(testid: str) -> str:
    """Every request of a run, setup included, as k6's own summary counts them."""
    matchers = f'testid="{testid}"'
    return f"sum({_kept(REQUESTS, matchers)})"


def start(testid: str) -> str:
    """When a run's load began, in Unix time."""
    return f'{SCENARIO_START}{{testid="{testid}"}}'


def heartbeat(testid: str) -> str:
    """The one series of a run that k6 pushes each second, whatever is answered."""
    return f'{VIRTUAL_USERS}{{testid="{testid}"}}'
