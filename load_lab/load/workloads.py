"""Names of k6's profiles and scenarios (k6/), each with one line of description.

k6's script defines them (k6/README.md); a test compares the names. This module imports only the
standard library, because every `lab --help` imports it.
"""

from enum import StrEnum


class _Choice(StrEnum):
    """A name with one line of description."""

    about: str

    def __new__(cls, name: str, about: str) -> "_Choice":
        member = str.__new__(cls, name)
        member._value_ = name
        member.about = about
        return member


class Profile(_Choice):
    """How the arrival rate changes over time."""

    SMOKE = "smoke", "5 virtual users for 20 s; checks every response body"
    BREAKPOINT = "breakpoint", "arrival rate rises from 0 to --rate, until a limit is exceeded"
    BREAKPOINT_GEOMETRIC = (
        "breakpoint-geometric",
        "arrival rate grows by 7 % a second from --start-rate to --rate",
    )
    HOLD = "hold", "constant arrival rate"
    TRIAL = "trial", "constant arrival rate, decimals included: one load of lab capacity"
    SPIKE = "spike", "arrival rate jumps to four times the calm before and after it"
    CLOSED = "closed", "each virtual user sends the next request after its last response"
    CLOSED_RAMP = "closed-ramp", "like closed, with a growing number of virtual users"
    ARTICLE_BREAKPOINT = "article-breakpoint", "the published load of cache-ladder"
    ARTICLE_BREAKPOINT_WARM = "article-breakpoint-warm", "the same, after a minute of warm-up"
    TIMES = "times", "requests at the times of a log (scenario replay only)"


class Place(_Choice):
    """Where k6 runs."""

    HERE = "here", "on this machine, or in a container of it"
    KUBERNETES = "kubernetes", "as pods of k6-operator (docs/scaling.md)"


class Scenario(_Choice):
    """Which requests arrive."""

    JOURNEY = "journey", "a visitor: the list, details, a booking"
    LIST = "list", "the list, without details"
    DETAIL = "detail", "a detail page with suites and bookings"
    BOOKING = "booking", "a booking of free nights"
    STALENESS = "staleness", "time from a booking to the first page that shows it (smoke only)"
    WORKBENCH = "workbench", "one route of the workbench, named by --route"
    AVAILABILITY = "availability", "WebSockets that wait for bookings (hold only)"
    FAULTS = "faults", "bookings that are retried, and pages that must show them (hold only)"
    REPLAY = "replay", "the requests of a mix, in its shares or at the times of a log"


# Their bookings fill the suites.
WRITING_SCENARIOS = (Scenario.JOURNEY.value, Scenario.BOOKING.value)


class ApiScenario(_Choice):
    """The scenarios of the reference app that work at any arrival rate."""

    JOURNEY = Scenario.JOURNEY.value, Scenario.JOURNEY.about
    LIST = Scenario.LIST.value, Scenario.LIST.about
    DETAIL = Scenario.DETAIL.value, Scenario.DETAIL.about
    BOOKING = Scenario.BOOKING.value, Scenario.BOOKING.about


# The scenario that sends an operation of the reference app alone (REQUESTS in k6/hotel/metrics.js).
SCENARIO_OF = {
    "hotel_list": ApiScenario.LIST,
    "hotel_detail": ApiScenario.DETAIL,
    "booking_create": ApiScenario.BOOKING,
}
