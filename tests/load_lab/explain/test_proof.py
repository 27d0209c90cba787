"""`lab explain --prove`: which change of the stack, and when its effect counts."""

import pytest

from load_lab.diagnosis import causes
from load_lab.errors import UsageError
from load_lab.explain import proof
from load_lab.explain.changes import Work, change_for, control_of
from load_lab.explain.proof import describe_loss, has_moved, has_stayed
from load_lab.results.step import Step
from load_lab.settings import load_settings, update_settings


def _change(cause, *assignments, share=0.8, scenario="detail", route=None):
    settings = update_settings(load_settings({}), list(assignments))
    return change_for(cause.name, settings, share, Work(scenario, route))


@pytest.mark.parametrize(
    ("change", "settings", "factor"),
    [
        (_change(causes.SLOTS), ("LAB_WORKERS=4",), 2),
        (_change(causes.SLOTS, "LAB_SERVER=gunicorn-gthread"), ("LAB_THREADS=16",), 2),
        (_change(causes.POOL, "LAB_DB_POOL=2"), ("LAB_DB_POOL=4",), 2),
        (_change(causes.GIL, "LAB_WORKERS=1"), ("LAB_WORKERS=2", "LAB_THREADS=4"), 1.7),
        (_change(causes.BACKEND_CPU), ("LAB_DETAIL=fast",), 1.5),
        # 80 % of a request on the way: with half of it, a request takes 60 %.
        (_change(causes.NETWORK, "LAB_LATENCY_MS=40"), ("LAB_LATENCY_MS=20",), 1 / 0.6),
    ],
)
def test_named_part_gets_more(change, settings, factor):
    assert change.settings == settings
    assert change.factor == pytest.approx(factor)


@pytest.mark.parametrize("setting", ["LAB_TARGET_CPUS=3", "LAB_DATA_CUSTOMERS=17"])
def test_stack_with_other_cpus_or_data_proves_nothing(setting):
    running = load_settings({})
    with pytest.raises(UsageError, match=f"The run had {setting}"):
        proof._base(running, update_settings(running, [setting]))
    assert proof._base(running, update_settings(running, ["LAB_WORKERS=3"])).LAB_WORKERS == 3


def test_full_cpu_with_quick_code_gets_less():
    change = _change(causes.BACKEND_CPU, "LAB_DETAIL=fast")
    assert change.busy_loops
    assert change.factor < 1


def test_log_is_put_back():
    change = _change(causes.WAL)
    assert "off" in change.statements[0]
    assert "RESET synchronous_commit" in change.undo[0]


def test_rows_can_be_spread_in_the_workbench_only():
    change = _change(causes.ROW_LOCKS, scenario="workbench", route="row_lock")
    assert change.route == "random_row_lock"
    # Another route waits for another lock.
    assert _change(causes.ROW_LOCKS, scenario="workbench", route="io_create") is None
    assert _change(causes.ROW_LOCKS, scenario="booking") is None


@pytest.mark.parametrize("cause", [causes.GENERATOR, causes.OTHERS, causes.ONE_REQUEST])
def test_what_is_not_of_the_stack_can_not_be_changed(cause):
    assert _change(cause) is None


@pytest.mark.parametrize(
    ("step", "predicted", "moved"),
    [
        (Step(1.9, 0.1), 2.0, True),
        # Half of the prediction, on a logarithmic scale, is the least.
        (Step(1.45, 0.1), 2.0, True),
        (Step(1.35, 0.1), 2.0, False),
        # Far enough, but perhaps by chance.
        (Step(1.9, 1.2), 2.0, False),
        (Step(1.9, None), 2.0, False),
        # The other way.
        (Step(0.5, 0.1), 2.0, False),
        (Step(0.8, 0.05), 0.85, True),
        (Step(0.97, 0.05), 0.85, False),
    ],
)
def test_throughput_moves_as_predicted(step, predicted, moved):
    assert has_moved(step, predicted) == moved


@pytest.mark.parametrize(
    ("step", "predicted", "stayed"),
    [
        (Step(1.0, 0.1), 2.0, True),
        (Step(0.95, 0.46), 2.0, True),
        (Step(1.3, 0.26), 2.0, True),
        # It moved by half of the prediction; it may have moved by all of it; and it failed.
        (Step(1.5, 0.1), 2.0, False),
        (Step(1.0, 1.2), 2.0, False),
        (Step(1.0, None), 2.0, False),
        (Step(1.0, 0.02), 0.85, True),
        (Step(0.9, 0.02), 0.85, False),
        # The other way is no support for the control's cause.
        (Step(0.5, 0.1), 2.0, True),
    ],
)
def test_control_must_stay(step, predicted, stayed):
    assert has_stayed(step, predicted) == stayed


@pytest.mark.parametrize(
    ("server", "what"),
    [("gunicorn-gthread", "LAB_THREADS"), ("uvicorn", "synchronous_commit"), ("daphne", None)],
)
def test_control_of_the_gil_leaves_its_cpu(server, what):
    settings = update_settings(load_settings({}), [f"LAB_SERVER={server}", "LAB_WORKERS=1"])
    work = Work("detail")
    change = change_for(causes.GIL.name, settings, 1.0, work)
    if what is None:
        assert change is None
    else:
        assert what in control_of(change, [], settings, work).what


@pytest.mark.parametrize(
    ("rates", "rate_of_run", "words"),
    [
        # Others hold the connections, and the restart of Postgres ends them; or all, so that
        # nothing was answered.
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
    ],
)
def test_unchanged_stack_that_lost_the_cause_proves_nothing(rates, rate_of_run, words):
    change = _change(causes.MAX_CONNECTIONS)
    text = describe_loss(rates, change.ends, rate_of_run)
    assert words in text
    assert bool(text) == bool(words)


def test_cause_that_ended_by_itself_is_not_charged_to_the_change():
    text = describe_loss((6, 16, 15.5), _change(causes.SLOTS).ends, 6)
    assert "later 15.5/s. What limited the run has ended. Repeat the load." in text
