"""Postgres's date range exceeds Python's: dates that Python can't read are rejected."""

import pytest
from django.db import IntegrityError, connection, transaction

pytestmark = pytest.mark.django_db


def _book(api, booking_data, **days):
    return api.post("/api/booking/", {**booking_data, **days}, format="json")


@pytest.mark.parametrize(
    ("column", "day"),
    [
        ("check_out", "10000-01-01"),
        ("check_out", "infinity"),
        ("check_in", "0001-12-31 BC"),
        ("check_in", "-infinity"),
    ],
)
def test_postgres_rejects_dates_outside_the_range_of_python(api, booking_data, column, day):
    booking = _book(api, booking_data).json()
    change = f"UPDATE hotels_booking SET {column} = %s::date WHERE id = %s"
    rejection = pytest.raises(IntegrityError, match="booking_is_in_years_1_to_9999")
    with rejection, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(change, [day, booking["id"]])


def test_first_and_last_day_can_be_booked_and_read(api, booking_by, booking_data, suite):
    edges = [("0001-01-01", "0001-01-02"), ("9999-12-30", "9999-12-31")]
    for check_in, check_out in edges:
        assert _book(api, booking_data, check_in=check_in, check_out=check_out).status_code == 201
    (suite_data,) = api.get(f"/api/hotel/{suite.hotel_id}/").json()["suites"]
    assert [(b["check_in"], b["check_out"]) for b in suite_data["bookings"]] == edges
