"""POST /api/booking/, in both implementations."""

from uuid import uuid4

import pytest
from hotels import selectors
from hotels.models import Booking

pytestmark = pytest.mark.django_db

# Fixed: each pytest process has to generate the same test ids.
UNKNOWN = "6f0b0a52-7a0e-4c0f-9f43-5f1f6a3a2b10"


def _post(api, booking_data, **headers):
    return api.post("/api/booking/", booking_data, format="json", headers=headers)


def test_booking_is_created_and_returned(api, booking_by, booking_data):
    answer = _post(api, booking_data)
    assert answer.status_code == 201
    document = answer.json()
    assert {name: document[name] for name in booking_data} == booking_data
    assert list(document) == ["id", "suite", "check_in", "check_out", "customers", "created_at"]
    booking = Booking.objects.get(pk=document["id"])
    assert sorted(str(c.pk) for c in booking.customers.all()) == sorted(booking_data["customers"])


def test_next_stay_may_begin_on_check_out_day(api, booking_by, booking_data):
    assert _post(api, booking_data).status_code == 201
    next_stay = {**booking_data, "check_in": "2031-05-04", "check_out": "2031-05-05"}
    assert _post(api, next_stay).status_code == 201


def test_already_booked_nights_are_409(api, booking_by, booking_data):
    _post(api, booking_data)
    answer = _post(api, {**booking_data, "check_in": "2031-05-03", "check_out": "2031-05-09"})
    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "slot_taken"
    assert Booking.objects.count() == 1


def test_only_successful_bookings_raise_the_hotel_version(api, booking_by, booking_data, hotel):
    before = selectors.hotel_version(hotel.pk)
    _post(api, booking_data)
    assert selectors.hotel_version(hotel.pk) == before + 1
    _post(api, booking_data)
    _post(api, {**booking_data, "customers": [str(uuid4())], "check_in": "2031-04-01"})
    assert selectors.hotel_version(hotel.pk) == before + 1


def test_unknown_suite_is_404(api, booking_by, booking_data):
    answer = _post(api, {**booking_data, "suite": str(uuid4())})
    assert answer.status_code == 404
    assert "suite" in answer.json()["error"]["fields"]


def test_unknown_customer_is_404_and_named_in_message(api, booking_by, booking_data):
    unknown = str(uuid4())
    answer = _post(api, {**booking_data, "customers": [booking_data["customers"][0], unknown]})
    assert answer.status_code == 404
    (message,) = answer.json()["error"]["fields"]["customers"]
    assert unknown in message
    assert booking_data["customers"][0] not in message


def test_customers_above_suite_capacity_are_400(api, booking_by, booking_data, customers):
    answer = _post(api, {**booking_data, "customers": [str(c.pk) for c in customers]})
    assert answer.status_code == 400
    assert "3" in answer.json()["error"]["fields"]["customers"][0]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("suite", "none"),
        ("suite", None),
        ("check_in", "2031-02-30"),
        ("check_out", "2031-05-01"),
        ("check_out", "2031-04-30"),
        ("customers", []),
        ("customers", "x"),
        ("customers", ["\x00"]),
        ("suite", 5),
        ("suite", True),
    ],
)
def test_invalid_values_are_400_with_the_field(api, booking_by, booking_data, field, value):
    answer = _post(api, {**booking_data, field: value})
    assert answer.status_code == 400
    assert list(answer.json()["error"]["fields"]) == [field]
    assert Booking.objects.count() == 0


def test_duplicate_customer_is_400(api, booking_by, booking_data):
    answer = _post(api, {**booking_data, "customers": booking_data["customers"][:1] * 2})
    assert answer.status_code == 400
    assert "customers" in answer.json()["error"]["fields"]


@pytest.mark.parametrize(
    ("body", "content_type", "status"),
    [
        ("{", "application/json", 400),
        (b"\xff\xfe{", "application/json", 400),
        ("[]", "application/json", 400),
        ("null", "application/json", 400),
        ("[" * 5_000, "application/json", 400),
        ('"x"', "application/json", 400),
        ("a=b", "application/x-www-form-urlencoded", 415),
        ("x" * 70_000, "application/json", 413),
    ],
)
def test_invalid_bodies_return_the_error_format(api, db, body, content_type, status):
    answer = api.generic("POST", "/api/booking/", body, content_type=content_type)
    assert answer.status_code == status
    assert answer.json()["error"]["message"]


def test_list_item_errors_are_one_flat_list(api, booking_data):
    fields = _post(api, {**booking_data, "customers": [booking_data["customers"][0], "x"]}).json()[
        "error"
    ]["fields"]
    assert fields == {"customers": ["1: Must be a valid UUID."]}


def test_null_body_returns_no_data_error(api, db):
    """Only for this body does DRF's message differ if the serializer receives the data itself."""
    answer = api.generic("POST", "/api/booking/", "null", content_type="application/json")
    assert answer.json()["error"]["fields"] == {"non_field_errors": ["No data provided"]}


@pytest.mark.parametrize("key", [{}, {"Idempotency-Key": "k"}], ids=["no key", "key"])
@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"check_in": "2031-05-01", "check_out": "2031-05-02"}, 409),
        ({"suite": UNKNOWN}, 404),
        ({"customers": [UNKNOWN]}, 404),
        ({"customers": [f"{UNKNOWN[:-1]}{n}" for n in range(4)]}, 400),
    ],
)
def test_rejected_booking_leaves_version_and_rows_unchanged(
    api, booking_by, booking_data, hotel, change, status, key
):
    _post(api, booking_data)
    before = selectors.hotel_version(hotel.pk)
    later = {**booking_data, "check_in": "2031-06-01", "check_out": "2031-06-02", **change}
    assert _post(api, later, **key).status_code == status
    assert selectors.hotel_version(hotel.pk) == before
    assert Booking.objects.count() == 1
    assert Booking.customers.through.objects.count() == 2
