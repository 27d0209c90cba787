"""The effect of a fault on bookings and pages, compared with the promised limits."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from tests.faults.ledger import Answer, Booking, Ledger, Page

# docs/nginx-cache.md: LAB_NGINX_CACHE_TTL (1 s here) plus 2 s; one response time is added.
MAX_AGE_SECONDS = 1 + 2
# An outage may add this time to a page that is marked STALE.
STALE_IF_ERROR_SECONDS = 60
# Requests share a failed refresh for one second, counted in whole seconds.
SHARED_FAILURE_SECONDS = 2
MAX_RECOVERY_SECONDS = 10
# Minimum load after the repair; a shorter load can't show the recovery.
MIN_WATCHED_SECONDS = 5
# Share of the bookings that may be shed during an `unseen` fault.
MAX_SHED_SHARE = 0.05

# Error codes that ask a client to retry later.
RETRYABLE_CODES = {"overloaded", "unavailable", "timeout", "too_many_requests", "in_progress"}
NO_ANSWER = "no answer"


@dataclass(frozen=True)
class Outage:
    """The time from the fault to its repair, as Unix times. With `unseen`, no client may notice it;
    with `felt`, at least one client must.
    """

    began: float
    repaired: float
    unseen: bool = False
    felt: bool = False


@dataclass(frozen=True)
class StoredBookings:
    """Data in Postgres: each booking of the load's suites and nights, by id; and the number of
    overlapping pairs of bookings of one suite, in the whole table.
    """

    bookings: dict[str, Booking]
    overlapping: int


@dataclass(frozen=True)
class FaultResult:
    """One row of the table, times in seconds. `due` is the planned number of bookings and of page
    requests, `shed` the failures caused by LAB_SHED, `watched` the time of load after the repair.
    """

    fault: str
    unseen: bool
    felt: bool
    due: int
    sent: int
    acknowledged: int
    lost: int
    doubled: int
    overlapping: int
    pages: int
    pages_failed: int
    stale_beyond: int
    oldest_unmarked: float
    oldest_marked: float
    slowest_page: float
    failures: dict[str, int]
    shed: int
    unfit: list[str]
    recovered_after: float
    watched: float

    def violations(self) -> list[str]:
        """Return the violated limits."""
        zeros = ("lost", "doubled", "overlapping", "pages_failed", "stale_beyond")
        messages = [f"{name} = {getattr(self, name)}" for name in zeros if getattr(self, name)]
        if self.acknowledged < self.sent:
            messages.append(
                f"{self.sent - self.acknowledged} of {self.sent} bookings never succeeded"
            )
        if self.recovered_after > MAX_RECOVERY_SECONDS:
            messages.append(f"failed until {self.recovered_after:.1f} s after the repair")
        if self.unseen and not self._has_few_failures:
            messages.append(f"clients noticed: {self.failures}")
        return messages + self.unfit + self._invalid_reasons()

    def _invalid_reasons(self) -> list[str]:
        """Return the reasons why the other values are not valid."""
        reasons = []
        if min(self.sent, self.pages) < self.due:
            reasons.append(
                f"{self.sent} bookings and {self.pages} pages of {self.due} were asked for"
            )
        if self.watched < MIN_WATCHED_SECONDS:
            reasons.append(f"the load ended {self.watched:.1f} s after the repair")
        if self.felt and not self.failures:
            reasons.append("nobody noticed anything, so nothing was broken")
        return reasons

    @property
    def _has_few_failures(self) -> bool:
        """Return whether the only failures are a few requests shed by a busy machine."""
        return self.shed == sum(self.failures.values()) and self.shed <= MAX_SHED_SHARE * self.sent

    def as_json(self) -> dict[str, object]:
        return asdict(self)


def evaluate(
    fault: str, ledger: Ledger, outage: Outage, stored: StoredBookings, due: int
) -> FaultResult:
    """Return the results of one fault, under a load of `due` bookings and as many pages."""
    answers: list[Answer] = [*ledger.tries, *ledger.pages]
    recovery_seconds = _recovered_after(answers, outage.repaired)
    # A fault that clients must not notice is not an outage, so no page may be marked STALE.
    end = 0 if outage.unseen else outage.repaired + recovery_seconds + SHARED_FAILURE_SECONDS
    slowest = max((page.answered_at - page.sent_at for page in ledger.pages), default=0.0)
    marked_pages = {id(page) for page in ledger.pages if _is_marked(page, outage.began, end)}
    return FaultResult(
        fault=fault,
        unseen=outage.unseen,
        felt=outage.felt,
        due=due,
        sent=len(ledger.bookings),
        acknowledged=len(ledger.acknowledged),
        lost=_lost(ledger, stored.bookings),
        doubled=_doubled(ledger, stored.bookings),
        overlapping=stored.overlapping,
        pages=len(ledger.pages),
        pages_failed=sum(page.status != 200 for page in ledger.pages),
        stale_beyond=sum(
            _is_too_old(page, slowest, id(page) in marked_pages) for page in ledger.pages
        ),
        oldest_unmarked=max(
            (page.stale for page in ledger.pages if id(page) not in marked_pages), default=0
        ),
        oldest_marked=max(
            (page.stale for page in ledger.pages if id(page) in marked_pages), default=0
        ),
        slowest_page=slowest,
        failures=dict(Counter(_kind(answer) for answer in answers if _is_failure(answer))),
        shed=sum(answer.code == "overloaded" for answer in answers),
        unfit=sorted({_describe(answer) for answer in answers if _is_unfit(answer)}),
        recovered_after=recovery_seconds,
        watched=max((answer.sent_at for answer in answers), default=0.0) - outage.repaired,
    )


def _lost(ledger: Ledger, bookings: dict[str, Booking]) -> int:
    """Return the number of bookings answered with 201 that are missing or differ in Postgres."""
    acknowledged = ledger.acknowledged.items()
    return sum(bookings.get(booking) != ledger.bookings[key] for key, booking in acknowledged)


def _doubled(ledger: Ledger, bookings: dict[str, Booking]) -> int:
    """Return the number of stored bookings without a separate request; nights differ by request."""
    requests = Counter(ledger.bookings.values())
    return (Counter(bookings.values()) - requests).total()


def _recovered_after(answers: Iterable[Answer], repaired: float) -> float:
    """Return the time from the repair to the last failure of a request made after the repair."""
    failures = [
        answer.answered_at
        for answer in answers
        if answer.sent_at > repaired and _is_failure(answer)
    ]
    return max((end - repaired for end in failures), default=0.0)


def _is_failure(answer: Answer) -> bool:
    return answer.status not in (200, 201) and answer.code != "in_progress"


def _is_unfit(answer: Answer) -> bool:
    """Return whether an error lacks the API's format or a Retry-After header."""
    if answer.status in (0, 200, 201):
        return False
    is_retryable = answer.status in (409, 429, 503, 504) and answer.code in RETRYABLE_CODES
    return not (is_retryable and answer.retry_after)


def _describe(answer: Answer) -> str:
    after = "with" if answer.retry_after else "without"
    return f"answered {answer.status} {answer.code} {after} Retry-After"


def _kind(answer: Answer) -> str:
    return str(answer.status or NO_ANSWER)


def _is_marked(page: Page, began: float, end: float) -> bool:
    return page.cache == "STALE" and page.answered_at >= began and page.sent_at <= end


def _is_too_old(page: Page, slowest: float, marked: bool) -> bool:
    max_age = MAX_AGE_SECONDS + slowest + (STALE_IF_ERROR_SECONDS if marked else 0)
    return page.stale > max_age
