"""The load of one run, as a user describes it."""

import secrets
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from load_lab.errors import UsageError
from load_lab.load.kubernetes.cluster import Cluster

# Minimum of k6's GOMAXPROCS. Go's default is one per CPU; with a single one, the garbage collector
# delays every response that arrives while it runs (docs/measured/calibration.md). With four or more
# threads, virtual users that start together delay the first requests of a load.
MIN_THREADS = 2


@dataclass(frozen=True)
class Load:
    """Options of a k6 run; an option that is not set has the profile's default.

    `only` is a pattern of names of operations, for the scenario `replay`; `speed` is for the
    profile `times`, `calm` the time after a spike. `generators` processes share the load; with
    `samples` each of them writes the duration of each request to a file. With a `cluster`, they run
    there instead of here. `k6_options` are added to `k6 run`.
    """

    profile: str
    scenario: str | None = None
    rate: float | None = None
    duration: str | None = None
    vus: int | None = None
    route: str | None = None
    connections: int | None = None
    retries: int | None = None
    bound_ms: int = 1000
    max_vus: int | None = None
    pre_allocated_vus: int | None = None
    start_rate: float | None = None
    calm: str | None = None
    journey_details: int | None = None
    only: str | None = None
    speed: float | None = None
    testid: str = field(default="")
    generators: int = 1
    samples: bool = False
    cluster: Cluster | None = None
    k6_options: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """Return the label `instance_id` of each generator's series; a single one here has none."""
        alone = self.generators == 1 and self.cluster is None
        return [""] if alone else [str(number + 1) for number in range(self.generators)]

    @property
    def is_shared(self) -> bool:
        """Return whether it is prepared once, for generators that start by the clock."""
        return self.names != [""]

    def capped(self, rate: int) -> "Load":
        """Return the load with at most `rate` requests/s, whatever the profile.

        Raises:
            UsageError: it has a higher rate.
        """
        if self.rate is not None and self.rate > rate:
            raise UsageError(
                f"--rate {self.rate} is too high for a host that is not on your network. Allowed: "
                f"up to {rate}."
            )
        if self.generators > rate:
            raise UsageError(
                f"--generators {self.generators} send at least a request per second each, too many "
                f"for a host that is not on your network. Allowed: up to {rate}."
            )
        has_rate = self.profile not in ("smoke", "closed", "closed-ramp", "times")
        highest = rate if self.rate is None and has_rate else self.rate
        # k6 does not divide this among segments.
        rps = str(rate // self.generators)
        return replace(self, rate=highest, k6_options=(*self.k6_options, "--rps", rps))

    def env(self) -> dict[str, str]:
        """Return the variables that k6/main.js reads."""
        values = {
            "PROFILE": self.profile,
            "SCENARIO": self.scenario,
            "RATE": self.rate,
            "START_RATE": self.start_rate,
            "CALM": self.calm,
            "DURATION": self.duration,
            "VUS": self.vus,
            "MAX_VUS": self.max_vus,
            "PRE_ALLOCATED_VUS": self.pre_allocated_vus,
            "ROUTE": self.route,
            "CONNECTIONS": self.connections,
            "JOURNEY_DETAILS": self.journey_details,
            "ONLY": self.only,
            "SPEED": self.speed,
            "RETRIES": self.retries,
            "RESPONSE_TIME_BOUND": self.bound_ms,
            "TESTID": self.testid,
            "GENERATORS": self.generators if self.is_shared else None,
        }
        return {name: str(value) for name, value in values.items() if value is not None}


def new_testid(profile: str) -> str:
    """Return a name for one run: profile, UTC time, and four digits to distinguish equal
    seconds.
    """
    return f"{profile}-{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
