"""`lab bench` when it changes more than settings: a large dataset, a stack that was down."""

import math
import os
from pathlib import Path

import pytest

from load_lab.bench import growth
from load_lab.paths import ROOT, State
from load_lab.stack.native.supervision import leftovers
from load_lab.stack.reference import DATABASE
from load_lab.targets.reference import large_dataset
from load_lab.targets.reference.bookings import count_bookings
from load_lab.targets.reference.large_dataset import Size

pytestmark = pytest.mark.alone

DATA = ("LAB_DATA_HOTELS", "LAB_DATA_SUITES_PER_HOTEL", "LAB_DATA_BOOKINGS_PER_SUITE")


def _swap_with_checks(swap):
    """Return `swap` with checks: both databases have the same indexes and constraints, and each
    booking's `customer_ids` in the large one match its links.
    """
    copies = """
        SELECT count(*) FROM hotels_booking booking WHERE customer_ids <> ARRAY(
            SELECT customer_id FROM hotels_booking_customers
            WHERE booking_id = booking.id ORDER BY customer_id
        )"""

    def shape(engine, database):
        indexes = "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1"
        keys = "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid > 0 ORDER BY 1"
        return engine.sql(database, indexes), engine.sql(database, keys)

    def checked_swap(engine):
        assert shape(engine, large_dataset.LARGE_DATABASE) == shape(engine, DATABASE)
        assert engine.sql(large_dataset.LARGE_DATABASE, copies) == ["0"]
        swap(engine)

    return checked_swap


# The second repeat begins with the large large_dataset.
@pytest.mark.parametrize("repeats", [1, 2])
def test_large_dataset_is_measured_and_then_removed(stack, monkeypatch, repeats):
    """The dataset is only a little larger here: 10 million bookings take 15 minutes."""
    monkeypatch.setattr(large_dataset, "_FREE_BYTES", 0)
    monkeypatch.setattr(large_dataset, "swap", _swap_with_checks(large_dataset.swap))
    size = Size(hotels=12, bookings=40_000, tenfold=3)
    document = growth.run(stack, repeats=repeats, seconds=1, size=size)
    (ROOT / document["files"]["result"]).unlink()
    verdicts = [row["figures"][0] for row in document["rows"]]
    assert [len(verdict["values"]) for verdict in verdicts] == [repeats] * 3
    assert [verdict["why"] for verdict in verdicts if verdict["outcome"] == "failed"] == []
    pair = document["rows"][0]["pairs"][0]
    assert pair["tenfold"]["bytes"] == pytest.approx(3 * pair["once"]["bytes"], rel=0.1)
    # The number that load_db creates, without earlier bookings.
    assert count_bookings(stack) == math.prod(int(os.environ[name]) for name in DATA)
    assert (
        stack.sql("postgres", "SELECT datname FROM pg_database WHERE datname ~ 'grown|aside'") == []
    )


def test_stack_that_was_down_is_stopped_without_load_bookings(lab, second_stack):
    data = {"HOTELS": 2, "SUITES_PER_HOTEL": 10, "BOOKINGS_PER_SUITE": 3}
    second_stack |= {f"LAB_DATA_{name}": str(count) for name, count in data.items()}
    result = lab(
        "bench", "--only", "booking", "--repeat", "1", "--duration", "1s", "--json", **second_stack
    )
    document = result.json
    (ROOT / document["files"]["result"]).unlink()
    assert document["rows"][0]["pairs"][0]["fast"]["requests"] > 0
    assert leftovers(State(Path(second_stack["LAB_STATE_DIR"]))) == []
    assert lab("up", **second_stack).code == 0
    tables = lab("manage", "table_sizes", "--json", **second_stack).json["tables"]
    assert lab("down", **second_stack).code == 0
    (bookings,) = (each["rows"] for each in tables if each["table"] == "hotels_booking")
    assert bookings == math.prod(data.values())
