"""Rates of counters whose series begin late: a status that nobody has seen, a new statement.

rate() and increase() ignore the first value of a series, which such a counter has at its first
event.
"""

from grafana.src.queries.selection import STEP, WINDOW, Window
from load_lab.metrics.queries import total

# A scrape.
_STEP = "5s"


def counter_rate(counter: str, matchers: str, by: str = "", window: Window = STEP) -> str:
    """Return events/s of one of k6's counters, which k6 pushes only after a change."""
    now = f"last_over_time({counter}{{{matchers}}}[1d])"
    before = f"last_over_time({counter}{{{matchers}}}[1d] offset {window.duration})"
    return f"{total(f'{now} - ({before} or {now} * 0)', by)} / {window.seconds}"


def scraped_rate(counter: str, by: str = "") -> str:
    """Return events/s of a scraped counter."""
    return total(f"rate({_from_zero(counter)}[{WINDOW}:{_STEP}])", by)


def scraped_increase(counter: str, by: str) -> str:
    """Return the events of a scraped counter in the dashboard's range."""
    return total(f"increase({_from_zero(counter)}[$__range:{_STEP}])", by)


def _from_zero(counter: str) -> str:
    """Return the counter with a 0 before its first value, if its exporter was scraped then."""
    # The factor 1 removes the name, as the factor 0 does: else they are two series.
    return f"(1 * {counter} or 0 * {counter} offset -{_STEP} and on (instance) up == 1)"
