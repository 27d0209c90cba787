"""Simulated targets of known capacity, and the loads of a search on them.

Each target is a queue with one or several servers. Requests are served in their order. Times are
in seconds; nothing here waits.
"""

import heapq
import math
import random
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from load_lab.capacity.judgement import HoldPlan, Judgement, judge
from load_lab.capacity.outcomes import Alone, Hold, Ramp
from load_lab.capacity.timeline import Second, Slo

Draw = Callable[[random.Random], float]


def exponential(rng: random.Random) -> float:
    return rng.expovariate(1.0)


def lognormal(sigma: float) -> Draw:
    return lambda rng: rng.lognormvariate(-sigma * sigma / 2, sigma)


def pareto(alpha: float) -> Draw:
    return lambda rng: (alpha - 1) / alpha * rng.paretovariate(alpha)


def two_classes(rng: random.Random) -> float:
    """5 % of the requests take ten times as long as the others."""
    return (0.1 if rng.random() < 0.95 else 1.0) / 0.145 * rng.lognormvariate(-0.02, 0.2)


def fixed(_rng: random.Random) -> float:
    return 1.0


@dataclass(frozen=True)
class Kind:
    """A target: `servers` of it take `mean` seconds for a request, times what is drawn.

    `delay` comes on top without a server. The first requests take up to 1 + `warm_up` times as
    long. Requests that would wait longer than `shed_after` are refused. Once one waited longer
    than `congested_after`, all take `congestion` times as long until the queue is empty. The speed
    wanders by `wandering` (standard deviation of its logarithm), and every `stall_every` seconds
    nothing is served for 2 s.
    """

    mean: float
    servers: int = 1
    draw: Draw = exponential
    slo: Slo = field(default_factory=lambda: Slo(0.3))
    delay: float = 0.0
    warm_up: float = 0.0
    warm_requests: float = 1500.0
    shed_after: float = math.inf
    congested_after: float = math.inf
    congestion: float = 1.0
    wandering: float = 0.0
    stall_every: float = 0.0


KINDS = {
    "one server": Kind(0.005),
    "four servers": Kind(0.020, 4),
    "fixed times": Kind(0.005, draw=fixed),
    "two classes": Kind(0.010, 2, two_classes),
    "heavy tail (pareto 2.2)": Kind(0.020, 4, pareto(2.2)),
    "heavy tail (lognormal 1.5)": Kind(0.020, 4, lognormal(1.5)),
    "limit of 1 s": Kind(0.020, 4, slo=Slo(1.0)),
    "warm-up": Kind(0.020, 4, warm_up=1.5),
    "slow recovery": Kind(0.020, 4, congested_after=0.5, congestion=1.5),
    "12/s": Kind(0.160, 2, lognormal(0.3), Slo(1.0)),
    "12/s, exponential": Kind(0.160, 2, slo=Slo(1.0)),
    "limit far below saturation": Kind(0.040, 2, slo=Slo(0.2)),
    "sheds load": Kind(0.020, 4, shed_after=0.1),
    "speed wanders": Kind(0.020, 4, wandering=0.10),
    "stalls": Kind(0.020, 4, stall_every=60.0),
    "too slow": Kind(0.010, 2, delay=0.45),
}

# Capacities as `capacity` returns them, which takes minutes; make bench-capacity does it again.
CAPACITIES = {
    "one server": 194.2,
    "four servers": 194.0,
    "fixed times": 200.0,
    "two classes": 190.2,
    "heavy tail (pareto 2.2)": 192.5,
    "heavy tail (lognormal 1.5)": 163.2,
    "limit of 1 s": 198.3,
    "warm-up": 194.0,
    "slow recovery": 194.0,
    "12/s": 12.33,
    "12/s, exponential": 10.76,
    "limit far below saturation": 40.59,
    "sheds load": 192.5,
    "speed wanders": 194.0,
    "stalls": 194.0,
    "too slow": 0.0,
}

_GRID = 0.05
_STALL = 2.0
_WANDER_SECONDS = 30.0


class Speed:
    """Work done until a moment, for a speed that changes every `_GRID` seconds."""

    def __init__(self, kind: Kind, rng: random.Random, horizon: float) -> None:
        steps = int(horizon / _GRID)
        keep = math.exp(-_GRID / _WANDER_SECONDS)
        state = rng.gauss(0, 1)
        self.stalls = list(_stalls(kind, rng, horizon))
        stalled = {
            step
            for at in self.stalls
            for step in range(int(at / _GRID), int((at + _STALL) / _GRID))
        }
        self._work = [0.0]
        for step in range(steps):
            state = keep * state + math.sqrt(1 - keep * keep) * rng.gauss(0, 1)
            speed = 1e-6 if step in stalled else math.exp(kind.wandering * state)
            self._work.append(self._work[-1] + speed * _GRID)

    def work(self, when: float) -> float:
        step = int(when / _GRID)
        part = when / _GRID - step
        return self._work[step] + part * (self._work[step + 1] - self._work[step])

    def moment(self, work: float) -> float:
        """Return when that work is done."""
        step = min(max(bisect_left(self._work, work), 1), len(self._work) - 1)
        before = self._work[step - 1]
        return (step - 1 + (work - before) / (self._work[step] - before)) * _GRID


def _stalls(kind: Kind, rng: random.Random, horizon: float) -> list[float]:
    starts, at = list[float](), 0.0
    while kind.stall_every and at < horizon:
        at += rng.expovariate(1 / kind.stall_every)
        starts.append(at)
        at += _STALL
    return starts


@dataclass(frozen=True)
class Request:
    arrived: float
    ended: float
    failed: bool = False

    @property
    def seconds(self) -> float:
        return self.ended - self.arrived


class Target:
    """A target in use; its clock goes on with each load."""

    def __init__(self, kind: Kind, seed: int, horizon: float = 1500.0) -> None:
        self.kind, self.time = kind, 0.0
        self.rng = random.Random(seed)
        even = not kind.wandering and not kind.stall_every
        self.speed = None if even else Speed(kind, self.rng, horizon)
        self._free = [0.0] * kind.servers
        self._served, self._congested, self._due = 0, False, 0.0
        self.busy_until = 0.0

    def load(self, start: float, end: float, seconds: float) -> list[Request]:
        """Send evenly spaced requests at a rate that goes from `start` to `end`."""
        requests, slope = list[Request](), (end - start) / seconds
        total = start * seconds + slope * seconds**2 / 2
        while self._due < total:
            at = self._due / start
            if slope:
                at = (-start + math.sqrt(start**2 + 2 * slope * self._due)) / slope
            requests.append(self._serve(self.time + at))
            self._due += 1
        self._due -= total
        self.time += seconds
        return requests

    def single(self) -> Request:
        """Send one request, and wait for its response."""
        request = self._serve(self.time)
        self.time = request.ended
        return request

    def idle(self, seconds: float) -> None:
        self.time += seconds

    def stalled(self, start: float, end: float) -> bool:
        stalls = self.speed.stalls if self.speed else []
        return any(start - _STALL < at < end for at in stalls)

    def mean_speed(self, start: float) -> float | None:
        """Return the speed since then, as accurate as it can be measured."""
        if self.speed is None:
            return None
        work = self.speed.work(self.time) - self.speed.work(start)
        return work / (self.time - start) * math.exp(self.rng.gauss(0, 0.02))

    def _serve(self, arrived: float) -> Request:
        kind, now = self.kind, self.speed.work(arrived) if self.speed else arrived
        free = self._free[0]
        wait = max(free - now, 0.0)
        if wait > kind.shed_after:
            return Request(arrived, arrived + 0.002, failed=True)
        self._congested = wait > kind.congested_after or (self._congested and wait > 0)
        work = kind.mean * kind.draw(self.rng)
        work *= 1 + kind.warm_up * math.exp(-self._served / kind.warm_requests)
        work *= kind.congestion if self._congested else 1
        self._served += 1
        done = max(free, now) + work
        heapq.heapreplace(self._free, done)
        ended = self.speed.moment(done) if self.speed else done
        if kind.delay:
            ended += kind.delay * self.rng.lognormvariate(-0.045, 0.3)
        self.busy_until = max(self.busy_until, ended)
        return Request(arrived, ended, False)


# What k6's start and its setup take before each load, and how late its pushes are seen.
_START, _PUSH = 4.5, 1.0
_GROWTH = 1.10
_MAX_RAMP = 60


class SimulatedLoads:
    """`Loads` of a search, on a simulated target."""

    def __init__(self, target: Target, slo: Slo) -> None:
        self._target, self._slo = target, slo

    def now(self) -> float:
        return self._target.time

    def alone(self) -> Alone:
        target, start = self._target, self._target.time
        requests = list[Request]()
        while len(requests) < 40 and target.time - start < 4:
            requests.append(target.single())
        times = sorted(request.seconds for request in requests)
        late = sum(time > self._slo.p95_seconds for time in times)
        target.idle(_START)
        disturbed = target.stalled(start, target.time)
        return Alone(times[len(times) // 2], len(times), late, disturbed=disturbed)

    def ramp(self, start: float) -> Ramp:
        target, began = self._target, self._target.time
        requests, rate, bad, marks = list[Request](), start, 0, list[float]()
        while target.time - began < _MAX_RAMP and bad < 2:
            requests += target.load(rate, rate * _GROWTH, 1.0)
            marks.append(rate * (1 + _GROWTH) / 2)
            rate *= _GROWTH
            bad = bad + 1 if self._is_late(requests, rate) else 0
        now = target.time
        answered = sum(now - 3 < r.ended <= now and not r.failed for r in requests) / 3
        disturbed = target.stalled(now - 8, now)
        late_from = self._late_from(requests, marks, began)
        return Ramp(
            answered,
            late_from,
            _variation(requests),
            rate,
            disturbed=disturbed,
            speed=target.mean_speed(now - 3),
        )

    def _is_late(self, requests: list[Request], rate: float) -> bool:
        now, limit = self._target.time, self._slo.p95_seconds
        recent = [r for r in requests[-int(rate * (limit + 4)) - 10 :] if r.ended > now - 2]
        known = [r for r in recent if r.ended <= now or now - r.arrived > limit]
        late = sum(min(r.ended, now) - r.arrived > limit or r.failed for r in known)
        waiting = sum(r.ended > now for r in recent)
        many = len(known) >= 5 and late / len(known) > 0.25
        return many or waiting > 2 * limit * rate + 4

    def _late_from(self, requests: list[Request], marks: list[float], began: float) -> float | None:
        seconds = [[0, 0] for _ in marks]
        for r in requests:
            second = seconds[min(int(r.arrived - began), len(marks) - 1)]
            second[0] += 1
            second[1] += r.failed or r.seconds > self._slo.p95_seconds
        found = None
        for (count, late), rate in zip(reversed(seconds), reversed(marks), strict=True):
            if count and late / count <= 0.05:
                break
            found = rate
        return found

    def hold(self, rate: float, plan: HoldPlan) -> Hold:
        target, began = self._target, self._target.time
        course, requests = _Course(began, self._slo), list[Request]()
        judgement: Judgement | None = None
        while judgement is None:
            requests += target.load(rate, rate, 1.0)
            # Pushes of the last second have not arrived yet.
            seconds = course.seconds(requests, target.time - _PUSH)
            judgement = judge(rate, seconds, self._slo, plan)
        disturbed = target.stalled(began, target.time)
        return Hold(rate, seconds, judgement, disturbed, speed=target.mean_speed(began))

    def drain(self) -> float:
        target = self._target
        waited = max(target.busy_until - target.time, 0.0)
        target.idle(max(min(waited, 20.0), _START))
        return waited


class _Course:
    """The complete seconds of a hold that began at `began`."""

    def __init__(self, began: float, slo: Slo) -> None:
        self._began, self._limit = began, slo.p95_seconds

    def seconds(self, requests: list[Request], now: float) -> list[Second]:
        count = int(now - self._began + 1e-9)
        rows = [[0.0] * 5 for _ in range(count)]
        for r in requests:
            arrived = int(r.arrived - self._began)
            if arrived < count:
                rows[arrived][0] += 1
            ended = int(r.ended - self._began)
            if ended < count:
                row = rows[ended]
                row[1] += 1
                row[2] += not r.failed and r.seconds > self._limit
                row[3] += r.failed
                row[4] += r.seconds
        return [
            Second(*row, in_flight=waiting, overdue=overdue)
            for row, (waiting, overdue) in zip(rows, self._waiting(requests, rows), strict=True)
        ]

    def _waiting(
        self, requests: list[Request], rows: list[list[float]]
    ) -> list[tuple[float, float]]:
        """Return the requests in flight at the end of each second, and those overdue: as from
        counters, the arrivals a limit earlier that have no response yet.
        """
        waiting, arrived, answered, index = list[tuple[float, float]](), 0.0, 0.0, 0
        for number, row in enumerate(rows):
            arrived += row[0]
            answered += row[1]
            due = self._began + number + 1 - self._limit
            while index < len(requests) and requests[index].arrived <= due:
                index += 1
            waiting.append((arrived - answered, max(index - answered, 0.0)))
        return waiting


def _variation(requests: list[Request]) -> float:
    """Return the variation of the response times in the first half of the ramp."""
    middle = (requests[0].arrived + requests[-1].arrived) / 2
    times = [r.seconds for r in requests if r.arrived <= middle]
    mean = sum(times) / len(times)
    return math.sqrt(sum((t - mean) ** 2 for t in times) / len(times)) / mean


def is_sustained(kind: Kind, rate: float, seconds: float, seed: int) -> bool:
    """Return whether a target meets its SLO at a rate for a long time, from its second tenth on."""
    target = Target(replace(kind, wandering=0.0, stall_every=0.0, warm_up=0.0), seed, 0)
    requests = target.load(rate, rate, seconds)
    judged = requests[len(requests) // 10 :]
    failed = sum(r.failed for r in judged)
    bad = failed + sum(not r.failed and r.seconds > kind.slo.p95_seconds for r in judged)
    return failed <= kind.slo.max_errors * len(judged) and bad <= 0.05 * len(judged)


def capacity(kind: Kind, requests: int = 200_000) -> float:
    """Return the capacity of a target in the long run, by bisection; 0 if no rate meets its SLO.

    Of a target that warms up, stalls or wanders, it is that without.
    """
    low, high = 0.3 / kind.mean, 1.2 * kind.servers / kind.mean
    steady = replace(kind, congested_after=math.inf)
    if not is_sustained(steady, 0.1 / kind.mean, 600, 1):
        return 0.0
    for _ in range(10):
        rate = math.sqrt(low * high)
        passes = sum(is_sustained(steady, rate, requests / rate, seed) for seed in (1, 2, 3))
        low, high = (rate, high) if passes >= 2 else (low, rate)
    return math.sqrt(low * high)
