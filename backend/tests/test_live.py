"""WebSockets on real servers: a booking in any process reaches the clients of its hotel."""

import time
from contextlib import suppress

import httpx
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from tests.support.live_servers import COMMANDS, SECONDS, close_code, receive, serve

pytestmark = pytest.mark.django_db(transaction=True)

UNKNOWN = "6f0b0a52-7a0e-4c0f-9f43-5f1f6a3a2b10"


@pytest.fixture(scope="module", params=list(COMMANDS))
def server(request, django_db_setup):
    with serve(request.param, LAB_WEBSOCKETS="on") as address:
        yield address


def test_booking_reaches_all_clients_of_its_hotel(server, booking_by, hotel, booking_data, api):
    url = f"ws://{server}/ws/hotel/{hotel.pk}/"
    with connect(url) as one, connect(url) as other:
        assert [receive(each) for each in (one, other)] == [
            {"type": "ready", "hotel": str(hotel.pk)}
        ] * 2
        before = time.time()
        booking = api.post("/api/booking/", booking_data, format="json").json()
        event = receive(one)
        assert receive(other) == event
    assert before <= event.pop("committed_at") <= time.time()
    assert event == {
        "type": "availability",
        "hotel": str(hotel.pk),
        "suite": booking_data["suite"],
        "booking": booking["id"],
        "check_in": booking_data["check_in"],
        "check_out": booking_data["check_out"],
    }


def test_booking_made_on_the_same_server_arrives(server, hotel, booking_data):
    with connect(f"ws://{server}/ws/hotel/{hotel.pk}/") as websocket:
        receive(websocket)
        answer = httpx.post(f"http://{server}/api/booking/", json=booking_data, timeout=SECONDS)
        assert receive(websocket)["booking"] == answer.json()["id"]


def test_client_receives_only_successful_bookings(server, hotel, booking_data, api):
    with connect(f"ws://{server}/ws/hotel/{hotel.pk}/") as websocket:
        receive(websocket)
        statuses = [
            api.post("/api/booking/", booking_data, format="json").status_code for _ in range(2)
        ]
        later = booking_data | {"check_in": "2031-06-01", "check_out": "2031-06-02"}
        last = api.post("/api/booking/", later, format="json").json()
        assert statuses == [201, 409]
        assert [receive(websocket)["check_in"] for _ in range(2)] == [
            "2031-05-01",
            "2031-06-01",
        ]
        assert last["check_in"] == "2031-06-01"


@pytest.mark.parametrize("path", [f"ws/hotel/{UNKNOWN}/", "ws/hotel/first/", "ws/", "api/hotel/"])
def test_unknown_path_is_closed_with_4404(server, path):
    with connect(f"ws://{server}/{path}") as websocket:
        # Only the WebSocket of a hotel replies to this.
        with suppress(ConnectionClosed):
            websocket.send("ready?")
        assert close_code(websocket) == 4404


def test_ready_query_repeats_the_ready_message(server, hotel):
    with connect(f"ws://{server}/ws/hotel/{hotel.pk}/") as websocket:
        first = receive(websocket)
        for _ in range(2):
            websocket.send("ready?")
            assert receive(websocket) == first == {"type": "ready", "hotel": str(hotel.pk)}


def test_other_client_messages_are_ignored(server, hotel, booking_data, api):
    with connect(f"ws://{server}/ws/hotel/{hotel.pk}/") as websocket:
        receive(websocket)
        for message in ("no JSON", b"\x00", "x" * 1000):
            websocket.send(message)
        booking = api.post("/api/booking/", booking_data, format="json").json()
        assert receive(websocket)["booking"] == booking["id"]


@pytest.mark.parametrize("name", COMMANDS)
def test_handshake_is_rejected_without_the_setting(hotel, name):
    with serve(name, LAB_WEBSOCKETS="off") as address:
        for path in (f"ws/hotel/{hotel.pk}/", "ws/"):
            with pytest.raises(InvalidStatus) as error:
                connect(f"ws://{address}/{path}")
            assert error.value.response.status_code == 403
        assert httpx.get(f"http://{address}/api/hotel/").status_code == 200
