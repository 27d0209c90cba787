"""The search for a capacity, on simulated targets whose capacity is known."""

from dataclasses import replace

import pytest
from support.simulated_targets import CAPACITIES, KINDS, SimulatedLoads, Target, capacity

from load_lab.capacity.judgement import Judgement
from load_lab.capacity.outcomes import Alone, Hold, Ramp
from load_lab.capacity.search import find_capacity
from load_lab.capacity.timeline import Slo

# The full table: make bench-capacity.
RUNS = 20
SIMPLE = ("one server", "four servers", "fixed times", "two classes", "limit of 1 s", "sheds load")
HARD = ("heavy tail (pareto 2.2)", "warm-up", "slow recovery", "12/s", "stalls")
TOO_FEW_REQUESTS = (
    "12/s, exponential",
    "heavy tail (lognormal 1.5)",
    "limit far below saturation",
)
# One of each in `make test`: 20 searches take 3 s of CPU time.
EACH_SORT = ("one server", "warm-up", "12/s, exponential")


def _kinds(*names):
    return [
        pytest.param(name, marks=() if name in EACH_SORT else pytest.mark.full) for name in names
    ]


def _search(kind, seed, **options):
    return find_capacity(
        SimulatedLoads(Target(KINDS[kind], seed), KINDS[kind].slo), KINDS[kind].slo, **options
    )


def _searches(kind):
    return [_search(kind, seed) for seed in range(RUNS)]


def _error(found, kind):
    return abs(found.rate / CAPACITIES[kind] - 1)


@pytest.mark.parametrize("kind", _kinds(*SIMPLE, *HARD))
def test_capacity_is_found_within_5_percent(kind):
    searches = _searches(kind)
    wanted = 0.95 if kind in SIMPLE else 0.9
    assert sum(_error(found, kind) <= 0.05 for found in searches) >= wanted * RUNS
    confirmed = [found for found in searches if found.confirmed]
    assert len(confirmed) > RUNS / 2
    # At full size, make bench-capacity counts them.
    assert sum(_error(found, kind) > 0.05 for found in confirmed) <= (1 if kind in SIMPLE else 2)


@pytest.mark.parametrize("kind", _kinds(*TOO_FEW_REQUESTS))
def test_interval_covers_capacity_where_requests_are_too_few(kind):
    searches = _searches(kind)
    covers = [found.low <= CAPACITIES[kind] <= found.high for found in searches]
    assert sum(covers) >= 0.85 * RUNS
    assert not any(found.confirmed for found in searches)
    assert all("can't narrow it further" in " ".join(found.notes) for found in searches)


def test_interval_covers_capacity_at_the_mean_speed_of_a_wandering_machine():
    covered = 0
    for seed in range(RUNS):
        target = Target(KINDS["speed wanders"], seed)
        slo = KINDS["speed wanders"].slo
        found = find_capacity(SimulatedLoads(target, slo), slo)
        speed = target.speed.work(target.time) / target.time
        covered += found.low <= CAPACITIES["speed wanders"] * speed <= found.high
    assert covered >= 0.8 * RUNS


@pytest.mark.parametrize("kind", ["one server", "fixed times"])
def test_known_capacities_are_those_of_long_loads(kind):
    assert capacity(KINDS[kind], 20_000) == pytest.approx(CAPACITIES[kind], rel=0.02)


def test_target_that_one_request_exceeds_has_no_capacity():
    found = _search("too slow", 1)
    assert (found.outcome, found.rate, found.holds) == ("too_slow", None, ())


def test_larger_budget_narrows_the_interval():
    kind = "12/s, exponential"
    short = [_search(kind, seed) for seed in range(8)]
    long = [_search(kind, seed, budget=900) for seed in range(8)]
    assert sum(one.precision for one in long) < 0.7 * sum(one.precision for one in short)


def test_no_load_begins_after_the_budget():
    for seed in range(5):
        assert _search("heavy tail (lognormal 1.5)", seed, budget=120).seconds < 160


class _OtherLoads(SimulatedLoads):
    """A target of 200/s, as another load generator or machine sees it."""

    slo = Slo(0.3)

    def __init__(self, ramp=None, hold=None, drain=None):
        self.target = Target(KINDS["fixed times"], 1)
        super().__init__(self.target, self.slo)
        self._change_ramp, self._change_hold, self._wait = ramp, hold, drain

    def ramp(self, start):
        ramp = super().ramp(start)
        return self._change_ramp(ramp) if self._change_ramp else ramp

    def hold(self, rate, plan):
        hold = super().hold(rate, plan)
        return self._change_hold(hold) if self._change_hold else hold

    def drain(self):
        waited = super().drain()
        return self._wait if self._wait else waited

    def search(self, **options):
        return find_capacity(self, self.slo, **options)


def test_full_generator_is_the_limit():
    def full(ramp):
        return replace(ramp, answered=150.0, generator_full=True)

    found = _OtherLoads(ramp=full).search()
    assert (found.outcome, found.rate) == ("generator", 150.0)


def test_generator_that_is_full_in_a_hold_is_the_limit():
    full = Judgement(False, "the load generator was full")

    def above_120(hold):
        return replace(hold, generator_full=True, judgement=full) if hold.rate > 120 else hold

    found = _OtherLoads(hold=above_120).search()
    assert found.outcome == "generator"
    assert found.rate > 100


def test_ramps_leave_half_of_the_budget_for_holds():
    def disturbed_for_long(ramp):
        loads.target.idle(20)
        return replace(ramp, disturbed=True)

    loads = _OtherLoads(ramp=disturbed_for_long)
    found = loads.search(budget=120)
    assert any(hold.passed for hold in found.holds)
    assert found.rate == pytest.approx(200, rel=0.1)


def test_budget_that_ends_with_the_ramps_is_reported():
    def longer_than_the_budget(ramp):
        loads.target.idle(300)
        return ramp

    loads = _OtherLoads(ramp=longer_than_the_budget)
    found = loads.search()
    assert (found.holds, found.confirmed) == ((), False)
    assert found.notes == ("the budget ended during the ramps; use a longer --budget",)


def test_hold_that_the_machine_disturbed_is_repeated():
    rates = []

    def disturb_first(hold):
        rates.append(hold.rate)
        if len(rates) == 1:
            return replace(hold, judgement=Judgement(False, "late"), disturbed=True)
        return hold

    found = _OtherLoads(hold=disturb_first).search()
    assert rates[0] == rates[1]
    assert found.confirmed
    assert found.rate == pytest.approx(200, rel=0.03)


def test_slow_recovery_is_reported():
    found = _OtherLoads(drain=40.0).search()
    assert any("recovers slowly: after" in note and "40 s" in note for note in found.notes)


def test_target_that_becomes_faster_is_reported():
    ramps = []

    def cold(ramp):
        ramps.append(ramp)
        return replace(ramp, answered=90.0, late_from=90.0) if len(ramps) == 1 else ramp

    found = _OtherLoads(ramp=cold).search()
    assert any(note.startswith("the target was faster than at first") for note in found.notes)


def test_contradicting_holds_are_reported_and_widen_the_interval():
    holds = []

    def ever_slower(hold):
        holds.append(hold)
        passed = len(holds) <= 3
        return replace(hold, judgement=Judgement(passed, "" if passed else "late"))

    found = _OtherLoads(hold=ever_slower).search()
    assert not found.confirmed
    assert found.low <= min(hold.rate for hold in holds[3:])
    assert found.high >= max(hold.rate for hold in holds[:3])
    assert any("too noisy to narrow this further" in note for note in found.notes)


def test_wandering_speed_is_why_an_interval_stays_wide():
    found = _search("speed wanders", 13)
    assert not found.confirmed
    assert found.notes == (
        "the machine is too noisy to narrow this further: the speed of its CPUs varied by ±11%",
    )


class _Impostor:
    """Loads that always succeed at once: no target is that good."""

    time = 0.0

    def now(self):
        self.time += 5
        return self.time

    def alone(self):
        return Alone(0.005, 600)

    def ramp(self, start):
        return Ramp(answered=start * 4, late_from=None, variation=0.5, highest=start * 60)

    def hold(self, rate, plan):
        return Hold(rate, (), Judgement(True))

    def drain(self):
        return 0.0


def test_search_ends_without_a_failure():
    found = find_capacity(_Impostor(), Slo(0.3))
    assert found.outcome == "unconfirmed"
    assert found.above is None


@pytest.mark.parametrize(
    ("late", "failed", "outcome"),
    [(30, 0, "too_slow"), (0, 12, "too_slow"), (8, 2, "unconfirmed")],
)
def test_requests_alone_that_exceed_the_slo_end_the_search(late, failed, outcome):
    loads = _Impostor()
    loads.alone = lambda: Alone(0.005, 100, late, failed)
    assert find_capacity(loads, Slo(0.3, 0.01)).outcome == outcome


def test_first_requests_of_a_new_process_may_be_late():
    loads, answers = _Impostor(), [Alone(0.005, 100, late=30), Alone(0.005, 600)]
    loads.alone = lambda: answers.pop(0)
    assert find_capacity(loads, Slo(0.3)).outcome == "unconfirmed"
    assert answers == []


def test_search_without_an_answer_says_why():
    def void(hold):
        return replace(hold, judgement=Judgement(False, "late"), disturbed=True)

    found = _OtherLoads(hold=void).search()
    assert any("holds failed while disturbed" in note for note in found.notes)

    def late(hold):
        return replace(hold, judgement=Judgement(False, "late"))

    found = _OtherLoads(hold=late).search()
    assert any("perhaps no rate meets this SLO" in note for note in found.notes)
