"""Where requests wait in Django and Postgres."""

from grafana.src.queries.caches import DATABASE, nginx_requests
from grafana.src.queries.counters import scraped_increase, scraped_rate
from grafana.src.queries.selection import WINDOW

IN_FLIGHT = "sum(lab_http_requests_in_flight)"
WORKER_SLOTS = "sum(lab_worker_slots)"
ACCEPT_QUEUE = "sum(lab_accept_queue_connections)"
SATURATION = f"{IN_FLIGHT} / ({WORKER_SLOTS} > 0)"
CONNECTIONS = "sum by (state) (pg_stat_activity_count) > 0"
CONNECTIONS_MAX = "max(pg_settings_max_connections)"
LOCK_WAITERS = "sum(lab_pg_lock_waiters)"
POOL_WAITS = scraped_rate("lab_db_pool_waits_total")
POOL_WAITING = scraped_rate("lab_db_pool_wait_seconds_total")
SHED = scraped_rate("lab_shed_requests_total")


def abandoned_requests() -> str:
    """Return requests/s whose client disconnected before the response (Nginx's status 499)."""
    disconnects = scraped_rate('lab_nginx_requests_total{status="499"}')
    return f"{disconnects} or 0 * {nginx_requests()}"


def rejected_requests() -> str:
    """Return requests/s rejected at once, by status: 429 and 503."""
    return scraped_rate('lab_nginx_requests_total{status=~"429|503"}', "status")


def django_percentile(quantile: float) -> str:
    rate = f"sum by (le) (rate(lab_http_request_duration_seconds_bucket[{WINDOW}]))"
    return f"histogram_quantile({quantile}, {rate})"


def upstream_percentile(quantile: float) -> str:
    rate = f"sum by (le) (rate(lab_nginx_upstream_seconds_bucket[{WINDOW}]))"
    return f"histogram_quantile({quantile}, {rate})"


def locks() -> str:
    """Return the locks in the application's database, by mode."""
    return f"sum by (mode) (pg_locks_count{{{DATABASE}}}) > 0"


def statement_seconds() -> str:
    """Return the execution time, in seconds, of the ten slowest statements in the range."""
    return f"topk(10, {scraped_increase('lab_pg_statement_seconds_total', 'statement')} > 0)"


def statement_calls() -> str:
    return f"{scraped_increase('lab_pg_statement_calls_total', 'statement')} > 0"


def statement_mean() -> str:
    seconds = scraped_increase("lab_pg_statement_seconds_total", "statement")
    return f"{seconds} / ({statement_calls()})"


def transactions(outcome: str) -> str:
    """Return transactions/s; `outcome` is commit or rollback."""
    return f"sum(rate(pg_stat_database_xact_{outcome}{{{DATABASE}}}[{WINDOW}]))"
