"""`lab bench`: table, verdicts, void values and invalid input."""

from dataclasses import replace
from datetime import date

import pytest

from load_lab.bench import answers, benchmark, pgbench, rows, wrk
from load_lab.bench.benchmark import pairs
from load_lab.bench.rows import Row, Target, Variant
from load_lab.bench.sample import Sample, evaluate
from load_lab.bench.variants import check_bookings
from load_lab.errors import LabError, UsageError
from load_lab.machine.busy_loop import Busy
from load_lab.paths import ROOT
from load_lab.targets.reference.bookings import Slots

TARGET_FULL = Busy(generator=0.4, target=0.99)
GENERATOR_FULL = Busy(generator=0.97, target=0.5)
ROW = Row("r", "a row", (Variant("naive", "detail"), Variant("fast", "detail")), ())
TARGET = Target("fast", "naive", must_reach=4, floor=3)


def sample(rate, *, size=1000.0, busy=TARGET_FULL, wrong=""):
    return Sample(rate, size, int(rate * 5), 5.0, busy, wrong)


def pair(naive, fast):
    return {"naive": naive, "fast": fast}


# --- Verdicts


def test_verdict_uses_median_of_pair_ratios():
    samples = [pair(sample(10), sample(fast)) for fast in (30, 50, 90)]
    verdict = evaluate(TARGET, samples, check=False)
    assert verdict.values == [3, 5, 9]
    assert (verdict.reached, verdict.outcome) == (5, "reached")


def test_check_requires_only_the_floor():
    samples = [pair(sample(10), sample(35))]
    assert evaluate(TARGET, samples, check=False).outcome == "missed"
    assert evaluate(TARGET, samples, check=True).outcome == "reached"


def test_bytes_are_compared_as_reduction_factor():
    target = replace(TARGET, metric="bytes", must_reach=2.4)
    assert evaluate(
        target, [pair(sample(1, size=960), sample(9, size=400))], check=False
    ).values == [2.4]


@pytest.mark.parametrize(("slower", "outcome"), [(10, "reached"), (12, "missed")])
def test_longer_time_misses_target(slower, outcome):
    target = Target("tenfold", "once", 11, 11, metric="time")
    samples = [{"once": sample(120), "tenfold": sample(120 / slower)}]
    verdict = evaluate(target, samples, check=False)
    assert verdict.at_most
    assert verdict.outcome == outcome


@pytest.mark.parametrize("side", ["naive", "fast"])
def test_generator_at_its_limit_makes_value_void(side):
    sides = {"naive": sample(1), "fast": sample(100)}
    sides[side] = replace(sides[side], busy=GENERATOR_FULL)
    verdict = evaluate(TARGET, [pair(sample(1), sample(100)), sides], check=False)
    assert verdict.outcome == "void"
    assert "generator 97% busy, target 50%" in verdict.why


@pytest.mark.parametrize(
    ("busy", "void"),
    [
        (Busy(0.95, 0.95), False),  # both are full: the target is at its limit
        (Busy(0.89, 0.1), False),  # neither is full: both wait for something else
        (Busy(0.9, 0.89), True),
        (Busy(0.95, 1.0, held_back=True), True),  # another process fills the target's CPUs
        (Busy(0.89, 1.0, held_back=True), False),
    ],
)
def test_value_is_void_when_only_generator_is_full(busy, void):
    assert busy.void == void


def test_wrong_answer_fails_value_at_any_rate():
    samples = [pair(sample(1), sample(100, busy=GENERATOR_FULL, wrong="3 socket errors"))]
    verdict = evaluate(TARGET, samples, check=False)
    assert (verdict.outcome, verdict.why) == ("failed", "fast: 3 socket errors")


def test_target_without_measurements_is_failed():
    verdict = evaluate(TARGET, [], check=False)
    assert (verdict.outcome, verdict.reached) == ("failed", None)


@pytest.mark.parametrize(
    ("outcomes", "reached"),
    [(["reached"], True), (["reached", "void"], False), (["failed"], False), (["missed"], False)],
)
def test_table_is_reached_only_if_all_targets_are(outcomes, reached):
    verdicts = [{"outcome": outcome} for outcome in outcomes]
    assert benchmark.is_reached({"rows": [{"figures": verdicts}]}) == reached


# --- Reports of the generators


REPORT = {
    "requests": 50,
    "microseconds": 2_000_000,
    "bytes": 5000,
    "refused": 0,
    "socket_errors": 0,
}


def test_wrk_rate_is_requests_by_time():
    result = wrk.sample_of(REPORT, TARGET_FULL)
    assert (result.rate, result.bytes, result.wrong) == (25, 100, "")


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"refused": 2}, "2 answers of 400 and above"),
        ({"socket_errors": 1}, "1 socket errors"),
        ({"requests": 0}, "no request was answered"),
    ],
)
def test_wrk_error_makes_sample_wrong(changed, error):
    assert wrk.sample_of(REPORT | changed, TARGET_FULL).wrong == error


def test_answer_of_wrong_size_is_detected():
    result = Sample(100, 1200, 500, 5, TARGET_FULL)
    assert answers.check_size(result, 1000, 4).wrong == ""
    # A 200 instead of a 304, and the reverse.
    assert answers.check_size(result, 0, 4).wrong == ""
    assert "answers of 100000 each" in answers.check_size(result, 100_000, 4).wrong
    assert "answers of 0 each" in answers.check_size(replace(result, bytes=9000), 0, 4).wrong


def test_answer_without_booking_is_detected():
    result = Sample(100, 1200, 500, 5, TARGET_FULL)
    assert check_bookings(result, 502, 4).wrong == ""
    assert check_bookings(result, 499, 4).wrong == "500 answers made 499 bookings"


def test_different_bodies_stop_the_row():
    one, other = (answers.Answer(200, b"", body, "") for body in (b"[1]", b"[2, 3]"))
    answers.check_equal({"naive": one, "fast": one})
    with pytest.raises(LabError, match="naive 3 bytes, fast 6 bytes"):
        answers.check_equal({"naive": one, "fast": other})


def test_pgbench_rate_and_failures_are_read():
    output = (
        "number of transactions actually processed: 261\n"
        "number of failed transactions: {} (0.000%)\n"
        "tps = 89.517286 (without initial connection time)\n"
    )
    result = pgbench.sample_of(output.format(0), TARGET_FULL, 3)
    assert (result.rate, result.requests, result.wrong) == (89.517286, 261, "")
    assert pgbench.sample_of(output.format(2), TARGET_FULL, 3).wrong == "2 failed transactions"


SLOTS = Slots(date(2031, 1, 1), {"s1": ["c1", "c2"], "s2": ["c3"]}, "k-")


def test_pgbench_script_has_suite_and_no_placeholders(tmp_path):
    statements = [{"sql": "SELECT :suite::uuid,\n :customers::uuid[], :night_is_not_one"}]
    with pytest.raises(LabError, match=r":night_is_not_one\. Known: id, suite"):
        pgbench.write_scripts(statements, SLOTS, tmp_path, 1000)
    statements = [
        {"sql": "BEGIN"},
        {"sql": "SELECT :suite::uuid, :customers::uuid[], :body::jsonb"},
    ]
    first, second = pgbench.write_scripts(statements, SLOTS, tmp_path, 1000)
    assert "BEGIN;\nSELECT 's1'::uuid::uuid, ARRAY['c1'::uuid,'c2'::uuid]::uuid[]" in (
        first.read_text()
    )
    assert "'s2'::uuid" in second.read_text()


# --- Order and options


def test_alternate_repeats_reverse_the_order():
    order = []
    pairs(ROW, 3, lambda variant, repeat: order.append((repeat, variant.name)))
    assert order == [
        *((0, "naive"), (0, "fast")),
        *((1, "fast"), (1, "naive")),
        *((2, "naive"), (2, "fast")),
    ]


def test_floors_do_not_exceed_targets_and_name_known_variants():
    for row in rows.ROWS:
        names = {variant.name for variant in row.variants}
        assert set(row.equal) <= names
        for target in row.targets:
            assert {target.variant, target.baseline} <= names
            assert target.floor <= target.must_reach


def test_performance_page_has_every_row_with_its_target():
    page = (ROOT / "docs/performance.md").read_text()
    for row in rows.ROWS:
        line = next(line for line in page.splitlines() if line.startswith(f"| `{row.name}`"))
        for target in row.targets:
            assert f"{target.must_reach:g}" in line, (row.name, line)


def test_check_skips_rows_that_measure_time():
    assert rows.START in rows.select_rows([], check=False)
    assert rows.START not in rows.select_rows([], check=True)
    with pytest.raises(UsageError, match="start is a time"):
        rows.select_rows(["start"], check=True)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("--only", "hotel"), "There is no row hotel. Known: detail-fast, detail-versioned"),
        (("--growth", "--quick"), "can't be combined with --quick"),
        (("--repeat", "0"), "0 is not in the range 1<=x<=100"),
    ],
)
def test_wrong_input_is_one_message(lab, argv, message):
    result = lab("bench", *argv)
    assert result.is_one_message(2), result.err
    assert message in result.err


def test_other_engine_is_rejected_with_remedy(stack):
    class Docker:
        name = "docker"
        has_processes = False

    with pytest.raises(UsageError, match="LAB_ENGINE=native lab bench"):
        benchmark.run(Docker(), benchmark.resolve_options([], repeats=1, seconds=1, check=True))
