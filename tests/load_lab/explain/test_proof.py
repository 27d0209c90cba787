"""`lab explain --prove`: which change of the target, and when its effect counts."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from load_lab.diagnosis import causes
from load_lab.errors import UsageError
from load_lab.explain.changes import arms_of
from load_lab.explain.proof import describe_loss, has_moved, has_stayed
from load_lab.results.bottleneck import Candidate, Diagnosis
from load_lab.results.ratio import Ratio
from load_lab.settings import load_settings, update_settings
from load_lab.targets.change import Change
from load_lab.targets.declared import DeclaredTarget
from load_lab.targets.file import Variation, parse_target
from load_lab.targets.own import OwnSubject
from load_lab.targets.reference.changes import reference_changes
from load_lab.targets.reference.subject import ReferenceSubject, settings_as_measured
from load_lab.targets.variants import vary


def _found(cause, *candidates):
    shares = dict(candidates) or {cause.name: 0.8}
    ranked = [Candidate(name=name, share=share) for name, share in shares.items()]
    return Diagnosis(cause=cause.name, remedy=cause.remedy, candidates=ranked)


def _arms(cause, *assignments, scenario="detail", route=None):
    """Return the arms of the hotel API with these settings."""
    settings = update_settings(load_settings({}), list(assignments))
    subject = ReferenceSubject(None, scenario, base=settings)
    return arms_of(subject, cause.name, _found(cause), route)


@pytest.mark.parametrize(
    ("arms", "options", "factor"),
    [
        (_arms(causes.SLOTS), {"LAB_WORKERS": "4"}, 2),
        (_arms(causes.SLOTS, "LAB_SERVER=gunicorn-gthread"), {"LAB_THREADS": "16"}, 2),
        (_arms(causes.POOL, "LAB_DB_POOL=2"), {"LAB_DB_POOL": "4"}, 2),
        (_arms(causes.GIL, "LAB_WORKERS=1"), {"LAB_WORKERS": "2", "LAB_THREADS": "4"}, 1.7),
        (_arms(causes.BACKEND_CPU), {"LAB_DETAIL": "fast"}, 1.5),
        # 80 % of a request on the way: with half of it, a request takes 60 %.
        (_arms(causes.NETWORK, "LAB_LATENCY_MS=40"), {"LAB_LATENCY_MS": "20"}, 1 / 0.6),
    ],
)
def test_named_part_gets_more(arms, options, factor):
    assert arms[1].change.options == options
    assert arms[1].factor == pytest.approx(factor)
    assert arms[0].change == Change()


@pytest.mark.parametrize("setting", ["LAB_TARGET_CPUS=3", "LAB_DATA_CUSTOMERS=17"])
def test_stack_with_other_cpus_or_data_proves_nothing(setting):
    running = load_settings({})
    with pytest.raises(UsageError, match=f"The run had {setting}"):
        settings_as_measured(running, update_settings(running, [setting]))
    measured = update_settings(running, ["LAB_WORKERS=3"])
    assert settings_as_measured(running, measured).LAB_WORKERS == 3


def test_full_cpu_with_quick_code_gets_less():
    _, first, control = _arms(causes.BACKEND_CPU, "LAB_DETAIL=fast")
    assert first.change.busy_loops
    assert first.factor < 1
    assert control.change.options == {"LAB_WORKERS": "4"}


def test_log_is_put_back():
    change = _arms(causes.WAL)[1].change
    assert "off" in change.statements[0]
    assert "RESET synchronous_commit" in change.undo[0]


def test_rows_can_be_spread_in_the_workbench_only():
    (_, first, _) = _arms(causes.ROW_LOCKS, scenario="workbench", route="row_lock")
    assert first.change.route == "random_row_lock"
    # Another route waits for another lock.
    for scenario, route in (("workbench", "io_create"), ("booking", None)):
        with pytest.raises(UsageError, match="can't be changed to verify: row locks"):
            _arms(causes.ROW_LOCKS, scenario=scenario, route=route)


@pytest.mark.parametrize("cause", [causes.GENERATOR, causes.OTHERS, causes.ONE_REQUEST])
def test_what_is_not_of_the_stack_can_not_be_changed(cause):
    with pytest.raises(UsageError, match="can't be changed to verify"):
        _arms(cause)


def test_changes_of_the_hotel_api_are_of_known_causes():
    settings = update_settings(load_settings({}), ["LAB_DB_POOL=2", "LAB_LATENCY_MS=40"])
    for scenario, route in (("detail", None), ("workbench", "row_lock")):
        assert set(reference_changes(settings, scenario, route)) <= causes.NAMES


def _ratio(factor, error):
    """Return a ratio with this error of its interval; without one, nothing is known."""
    return Ratio(factor, factor / (1 + error), factor * (1 + error)) if error else Ratio(factor)


@pytest.mark.parametrize(
    ("ratio", "predicted", "moved"),
    [
        (_ratio(1.9, 0.1), 2.0, True),
        # Half of the prediction, on a logarithmic scale, is the least.
        (_ratio(1.45, 0.1), 2.0, True),
        (_ratio(1.35, 0.1), 2.0, False),
        # Far enough, but perhaps by chance.
        (_ratio(1.9, 1.2), 2.0, False),
        (_ratio(1.9, None), 2.0, False),
        (_ratio(0.0, None), 2.0, False),
        # The other way.
        (_ratio(0.5, 0.1), 2.0, False),
        (_ratio(0.8, 0.05), 0.85, True),
        (_ratio(0.97, 0.05), 0.85, False),
    ],
)
def test_throughput_moves_as_predicted(ratio, predicted, moved):
    assert has_moved(ratio, predicted) == moved


@pytest.mark.parametrize(
    ("ratio", "predicted", "stayed"),
    [
        (_ratio(1.0, 0.1), 2.0, True),
        (_ratio(0.95, 0.46), 2.0, True),
        (_ratio(1.3, 0.26), 2.0, True),
        # It moved by half of the prediction; it may have moved by all of it; and it failed.
        (_ratio(1.5, 0.1), 2.0, False),
        (_ratio(1.0, 1.2), 2.0, False),
        (_ratio(1.0, None), 2.0, False),
        (_ratio(0.0, None), 0.85, False),
        (_ratio(1.0, 0.02), 0.85, True),
        (_ratio(0.9, 0.02), 0.85, False),
        # The other way is no support for the control's cause.
        (_ratio(0.5, 0.1), 2.0, True),
    ],
)
def test_control_must_stay(ratio, predicted, stayed):
    assert has_stayed(ratio, predicted) == stayed


@pytest.mark.parametrize(
    ("server", "what"),
    [("gunicorn-gthread", "LAB_THREADS"), ("uvicorn", "synchronous_commit")],
)
def test_control_of_the_gil_leaves_its_cpu(server, what):
    (_, _, control) = _arms(causes.GIL, f"LAB_SERVER={server}", "LAB_WORKERS=1")
    assert what in control.change.what


def test_server_of_one_process_has_no_second():
    with pytest.raises(UsageError, match="can't be changed to verify"):
        _arms(causes.GIL, "LAB_SERVER=daphne", "LAB_WORKERS=1")


RATES = [
    # Others hold the connections, and the restart of Postgres ends them; or all, so that nothing
    # was answered.
    ((6, 16, 15.5), 6, "answered 6/s, later 15.5/s. It restarts Postgres, which ends"),
    ((0, 16, 15.5), 6, "answered 0/s, later 15.5/s"),
    # They held them during the run only.
    ((16, 15.5, 16.2), 6, "answers 15.5/s, and the run had 6/s"),
    # Those programs connect again; and noise.
    ((6, 6.1, 5.8), 6, ""),
    ((14, 16, 15.5), 12, ""),
    # One slice was better by chance.
    ((6, 16, 6.5), 6, ""),
    # A load that did not saturate the stack, such as the confirmed one of a capacity.
    ((16, 15.5, 16.2), 0, ""),
]


@pytest.mark.parametrize(("rates", "rate_of_run", "words"), RATES)
def test_unchanged_stack_that_lost_the_cause_proves_nothing(rates, rate_of_run, words):
    (_, first, _) = _arms(causes.MAX_CONNECTIONS)
    text = describe_loss(rates, first.change.ends, rate_of_run)
    assert words in text
    assert bool(text) == bool(words)


def test_cause_that_ended_by_itself_is_not_charged_to_the_change():
    text = describe_loss((6, 16, 15.5), _arms(causes.SLOTS)[1].change.ends, 6)
    assert "later 15.5/s. What limited the run has ended. Repeat the load." in text


# --- A target of the user's own


@dataclass
class Shop:
    """What a target's file says."""

    prove: dict = field(default_factory=dict)
    options: dict = field(default_factory=lambda: {"workers": 2, "threads": "4", "pool": 5})
    command: tuple = ("gunicorn", "--workers={workers}", "{threads}", "{pool}", "{unset}")

    def subject(self, **variation):
        document = {
            "url": "http://127.0.0.1:1",
            "start": {"command": self.command, "options": self.options},
            "prove": self.prove,
        }
        target = DeclaredTarget("shop", parse_target(document, "invalid"), Path("shop.toml"))
        return OwnSubject(None, vary(target, Variation(**variation)))

    def arms(self, cause, *candidates, **variation):
        found = _found(cause, *candidates)
        return arms_of(self.subject(**variation), cause.name, found, None)


SLOTS = {causes.SLOTS.name: {"workers": "x2"}}


def test_option_of_the_target_is_doubled_and_a_busy_loop_is_the_control():
    base, first, control = Shop(SLOTS).arms(causes.SLOTS)
    assert (base.variant.changes.options, first.variant.changes.options) == ({}, {"workers": "4"})
    assert first.change.what == "workers: 2 → 4"
    assert (first.factor, control.change.busy_loops) == (2, True)


def test_value_of_an_option_replaces_that_of_the_file():
    arms = Shop({causes.OUTSIDE.name: {"threads": 32, "pool": "off"}}).arms(causes.OUTSIDE)
    assert arms[1].change.what == "threads: 4 → 32, pool: 5 → off"


def test_variant_of_a_cell_is_what_is_doubled():
    arms = Shop(SLOTS).arms(causes.SLOTS, options={"workers": 3})
    assert arms[1].change.options == {"workers": "6"}


def test_full_cpus_of_a_target_need_an_option_as_control():
    _, first, control = Shop(SLOTS).arms(causes.BACKEND_CPU)
    assert first.change.busy_loops
    assert control.change.options == {"workers": "4"}
    # An option of this name says how many processes there are.
    assert Shop().arms(causes.BACKEND_CPU)[2].change.options == {"workers": "4"}
    with pytest.raises(
        UsageError, match=r'shop\.toml: \[prove\] "worker slots" = \{ OPTION = "x2"'
    ):
        Shop(options={"threads": 4}).arms(causes.BACKEND_CPU)


def test_gil_of_a_target_gets_more_processes():
    threads = {causes.SLOTS.name: {"threads": "x2"}}
    _, first, control = Shop(threads).arms(causes.GIL)
    assert (first.change.options, first.factor) == ({"workers": "4"}, 1.7)
    assert control.change.options == {"threads": "8"}
    # The same change is no control, and a busy loop would take the CPU that is needed.
    with pytest.raises(UsageError, match="can't be verified: one CPU per process"):
        Shop(SLOTS).arms(causes.GIL)


def test_next_candidate_that_can_be_changed_is_the_control():
    pool = {causes.POOL.name: {"pool": "x2"}}
    shares = [(causes.SLOTS.name, 0.6), (causes.OUTSIDE.name, 0.5), (causes.POOL.name, 0.4)]
    assert Shop(SLOTS | pool).arms(causes.SLOTS, *shares)[2].cause == causes.POOL.name


@pytest.mark.parametrize(
    ("shop", "cause", "message"),
    [
        (Shop(), causes.POOL, r'shop\.toml: \[prove\] "connection pool" = \{ OPTION = "x2" \}'),
        (Shop({"worker slot": {"workers": "x2"}}), causes.SLOTS, 'such as "worker slots"'),
        (
            Shop({causes.SLOTS.name: {"wrkers": "x2"}}),
            causes.SLOTS,
            r'"worker slots" in \[prove\] of shop\.toml: the command .* has no \{wrkers\}',
        ),
        (
            Shop({causes.SLOTS.name: {"unset": "x2"}}),
            causes.SLOTS,
            r"Add it: options = \{ unset = 2 \}",
        ),
        (
            Shop(SLOTS, options={"workers": "auto"}),
            causes.SLOTS,
            r"doubles workers, but workers = 'auto' in \[start\] is no number",
        ),
        (Shop({causes.SLOTS.name: {"workers": 2}}), causes.SLOTS, "would change nothing"),
    ],
)
def test_entry_that_can_not_prove_is_a_usage_error(shop, cause, message):
    with pytest.raises(UsageError, match=message):
        shop.arms(cause)


def test_causes_of_services_and_of_logs_may_have_entries():
    names = ("CPU of redis", "CPU quota of Postgres", "open files of the app")
    arms = Shop(SLOTS | {name: {"threads": "x2"} for name in names}).arms(causes.SLOTS)
    assert arms[1].cause == causes.SLOTS.name


def test_target_that_the_lab_does_not_start_proves_nothing():
    target = DeclaredTarget("shop", parse_target({"url": "http://127.0.0.1:1"}, ""), Path("s.toml"))
    with pytest.raises(UsageError, match=r"s\.toml has no \[start\]"):
        OwnSubject(None, target).changes()


@pytest.mark.parametrize("entry", ['"x2"', "{}", "{ 'no name' = 2 }"])
def test_prove_maps_causes_to_options(lab, tmp_path, entry):
    file = tmp_path / "shop.toml"
    file.write_text(f'url = "http://127.0.0.1:1"\n[prove]\n"worker slots" = {entry}\n')
    result = lab("k6", "smoke", "--target", str(file))
    assert result.is_one_message(2)
    assert "prove.worker slots" in result.err
