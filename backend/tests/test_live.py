"""WebSockets on real servers: a booking reaches who watches its hotel, from whichever process."""

import time
from contextlib import suppress

import httpx
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from tests.support.live_servers import COMMANDS, SECONDS, closed_with, heard, served

pytestmark = pytest.mark.django_db(transaction=True)

UNKNOWN = "6f0b0a52-7a0e-4c0f-9f43-5f1f6a3a2b10"


@pytest.fixture(scope="module", params=list(COMMANDS))
def server(request, django_db_setup):
    with served(request.param, LAB_WEBSOCKETS="on") as address:
        yield address


def test_a_booking_reaches_everyone_who_watches_its_hotel(server, booking_by, hotel, wish, api):
    url = f"ws://{server}/ws/hotel/{hotel.pk}/"
    with connect(url) as one, connect(url) as other:
        assert [heard(each) for each in (one, other)] == [
            {"type": "ready", "hotel": str(hotel.pk)}
        ] * 2
        before = time.time()
        made = api.post("/api/booking/", wish, format="json").json()
        said = heard(one)
        assert heard(other) == said
    assert before <= said.pop("committed_at") <= time.time()
    assert said == {
        "type": "availability",
        "hotel": str(hotel.pk),
        "suite": wish["suite"],
        "booking": made["id"],
        "check_in": wish["check_in"],
        "check_out": wish["check_out"],
    }


def test_a_booking_made_by_the_same_server_arrives_too(server, hotel, wish):
    with connect(f"ws://{server}/ws/hotel/{hotel.pk}/") as websocket:
        heard(websocket)
        answer = httpx.post(f"http://{server}/api/booking/", json=wish, timeout=SECONDS)
        assert heard(websocket)["booking"] == answer.json()["id"]


def test_who_watches_hears_of_bookings_alone_that_were_made(server, hotel, wish, api):
    with connect(f"ws://{server}/ws/hotel/{hotel.pk}/") as websocket:
        heard(websocket)
        statuses = [api.post("/api/booking/", wish, format="json").status_code for _ in range(2)]
        later = wish | {"check_in": "2031-06-01", "check_out": "2031-06-02"}
        last = api.post("/api/booking/", later, format="json").json()
        assert statuses == [201, 409]
        assert [heard(websocket)["check_in"] for _ in range(2)] == ["2031-05-01", "2031-06-01"]
        assert last["check_in"] == "2031-06-01"


@pytest.mark.parametrize("path", [f"ws/hotel/{UNKNOWN}/", "ws/hotel/first/", "ws/", "api/hotel/"])
def test_what_is_unknown_is_closed_with_4404(server, path):
    with connect(f"ws://{server}/{path}") as websocket:
        # Answered where a hotel is watched, and nowhere else.
        with suppress(ConnectionClosed):
            websocket.send("ready?")
        assert closed_with(websocket) == 4404


def test_who_asks_is_told_again_that_the_hotel_is_watched(server, hotel):
    with connect(f"ws://{server}/ws/hotel/{hotel.pk}/") as websocket:
        first = heard(websocket)
        for _ in range(2):
            websocket.send("ready?")
            assert heard(websocket) == first == {"type": "ready", "hotel": str(hotel.pk)}


def test_what_else_a_client_says_is_not_read(server, hotel, wish, api):
    with connect(f"ws://{server}/ws/hotel/{hotel.pk}/") as websocket:
        heard(websocket)
        for said in ("no JSON", b"\x00", "x" * 1000):
            websocket.send(said)
        made = api.post("/api/booking/", wish, format="json").json()
        assert heard(websocket)["booking"] == made["id"]


@pytest.mark.parametrize("name", COMMANDS)
def test_without_the_setting_a_handshake_is_refused(hotel, name):
    with served(name, LAB_WEBSOCKETS="off") as address:
        for path in (f"ws/hotel/{hotel.pk}/", "ws/"):
            with pytest.raises(InvalidStatus) as refused:
                connect(f"ws://{address}/{path}")
            assert refused.value.response.status_code == 403
        assert httpx.get(f"http://{address}/api/hotel/").status_code == 200
