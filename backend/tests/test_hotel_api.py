"""GET /api/hotel/ and GET /api/hotel/<id>/."""

from datetime import date
from uuid import uuid4

import orjson
import pytest
from django.db import connection
from hotels import selectors
from hotels.models import Booking, Suite
from lab_settings.kinds import Implementation

pytestmark = pytest.mark.django_db

# Fixed: each pytest process has to generate the same test ids.
UNKNOWN = "6f0b0a52-7a0e-4c0f-9f43-5f1f6a3a2b10"


def _book(suite, customers, day):
    booking = Booking.objects.create(
        suite=suite, check_in=date(2031, 1, day), check_out=date(2031, 1, day + 1)
    )
    booking.customers.set(customers)
    return booking


def test_list_is_an_array_of_hotels_with_suite_count(api, suite):
    answer = api.get("/api/hotel/")
    assert answer.status_code == 200
    (hotel,) = answer.json()
    assert list(hotel) == [
        *("id", "name", "address", "city", "stars", "description", "suite_count"),
    ]
    assert hotel["suite_count"] == 1


def test_list_sends_no_vary_and_no_cookie(api, suite):
    answer = api.get("/api/hotel/")
    assert "Vary" not in answer.headers
    assert not answer.cookies


def test_list_accepts_format_json_like_the_article(api, suite):
    assert api.get("/api/hotel/?format=json").content == api.get("/api/hotel/").content


def test_list_rejects_other_formats_in_the_error_format(api, suite):
    answer = api.get("/api/hotel/?format=xml")
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "not_found"


def test_detail_nests_suites_bookings_and_customers(api, detail_by, suite, customers):
    booking = _book(suite, customers[:2], 5)
    answer = api.get(f"/api/hotel/{suite.hotel_id}/")
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "application/json"
    (suite_data,) = answer.json()["suites"]
    assert suite_data == {
        "id": str(suite.pk),
        "number": 1,
        "capacity": 3,
        "price": "99.90",
        "bookings": [
            {
                "id": str(booking.pk),
                "check_in": "2031-01-05",
                "check_out": "2031-01-06",
                "customers": sorted(str(c.pk) for c in customers[:2]),
            }
        ],
    }


def _bodies(api, settings, hotel):
    bodies = []
    for implementation in Implementation:
        settings.LAB = settings.LAB.model_copy(update={"LAB_DETAIL": implementation})
        bodies.append(api.get(f"/api/hotel/{hotel.pk}/").content)
    return bodies


TEXTS = [
    'line\u2028ends\u2029 \x1f \x7f " \\ / 😀',
    "\\u2028 '; -- %s %(hotel)s {} </script>",
    "\ue000\uffff\U0010ffff \u200f\u202e\n\r\t\x08\x0c",
    "",
]


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_both_implementations_return_the_same_detail_bytes(api, settings, suite, customers, text):
    Suite.objects.create(hotel=suite.hotel, number=7, capacity=2, price="1234.50")
    for day in (20, 3, 11):
        _book(suite, customers[day % 4 :], day)
    hotel = suite.hotel
    hotel.description = hotel.name = hotel.address = text
    hotel.city += text
    hotel.save()
    naive, fast = _bodies(api, settings, hotel)
    assert naive == fast
    assert "Kraków".encode() in fast
    assert orjson.loads(fast)["city"] == hotel.city


def test_detail_without_suites_has_the_same_bytes(api, settings, hotel):
    naive, fast = _bodies(api, settings, hotel)
    assert naive == fast
    assert fast.endswith(b'"suites":[]}')


def test_detail_without_bookings_has_the_same_bytes(api, settings, suite):
    naive, fast = _bodies(api, settings, suite.hotel)
    assert naive == fast
    assert fast.endswith(b'"bookings":[]}]}')


def test_detail_order_does_not_depend_on_insertion_order(api, settings, hotel, customers):
    for number, price in ((10, "0.00"), (2, "999999.99"), (33, "0.10"), (1, "7.00")):
        suite = Suite.objects.create(hotel=hotel, number=number, capacity=9, price=price)
        for day in (9, 1, 5):
            _book(suite, [], day)
            _book(suite, reversed(customers), day + 1)
    naive, fast = _bodies(api, settings, hotel)
    assert naive == fast
    suites = orjson.loads(fast)["suites"]
    assert [suite["number"] for suite in suites] == [1, 2, 10, 33]
    ids = sorted(str(c.pk) for c in customers)
    assert [b["customers"] for b in suites[0]["bookings"]] == [[], ids] * 3


def test_date_format_does_not_depend_on_the_role(api, settings, suite, customers):
    """Postgres applies the role's `SET` before the connection's options."""
    _book(suite, customers, 5)
    with connection.cursor() as cursor:
        cursor.execute("SELECT reset_val FROM pg_settings WHERE name = 'DateStyle'")
        assert cursor.fetchone()[0].startswith("ISO")
        cursor.execute("SELECT source FROM pg_settings WHERE name = 'DateStyle'")
        assert cursor.fetchone() == ("client",)
    naive, fast = _bodies(api, settings, suite.hotel)
    assert naive == fast


def test_accept_parameters_do_not_change_the_body(api, detail_by, suite):
    path = f"/api/hotel/{suite.hotel_id}/"
    indented = api.get(path, headers={"Accept": "application/json; indent=4"})
    plain = api.get(path)
    assert indented.content == plain.content
    assert indented.headers["ETag"] == plain.headers["ETag"]


@pytest.mark.parametrize("parameter", ["x*=bogus''a", "x*=a; x*0=b", "q=", "=;,"])
def test_malformed_accept_parameters_cause_no_server_error(api, detail_by, suite, parameter):
    accept = {"Accept": f"application/json; {parameter}"}
    assert api.get("/api/hotel/", headers=accept).status_code == 200
    assert api.post("/api/booking/", {}, "json", headers=accept).status_code in (400, 406)


@pytest.mark.parametrize(
    "path", [f"/api/hotel/{UNKNOWN}/", "/api/hotel/none/", "/api/nothing/", "/api/hotel"]
)
def test_unknown_path_is_404_in_the_error_format(api, detail_by, db, path):
    answer = api.get(path)
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "not_found"


def test_version_takes_one_query(hotel, django_assert_num_queries):
    with django_assert_num_queries(1):
        assert selectors.hotel_version(hotel.pk) == hotel.version


def test_version_of_unknown_hotel_is_none(db):
    assert selectors.hotel_version(uuid4()) is None


def test_post_to_list_is_405_in_the_error_format(api, db):
    answer = api.post("/api/hotel/", {})
    assert answer.status_code == 405
    assert answer.json()["error"]["code"] == "method_not_allowed"
