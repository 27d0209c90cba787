"""The log of the load during a fault: lines written by k6/hotel/scenarios/faults.js."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Answer:
    """Result of one request; `status` is 0 without an answer. Unix times, durations in seconds."""

    sent_at: float
    answered_at: float
    status: int
    code: str | None = None
    retry_after: float | None = None


@dataclass(frozen=True)
class Try(Answer):
    """One try of a booking; all its tries have one key. `booking` is the id after success."""

    key: str = ""
    booking: str | None = None


@dataclass(frozen=True)
class Page(Answer):
    """A hotel's page. `stale` is its minimum age, since a newer version, at the request."""

    cache: str | None = None
    stale: float = 0


@dataclass(frozen=True)
class Booking:
    """The content of a booking request; customers sorted by id."""

    suite: str
    check_in: str
    check_out: str
    customers: tuple[str, ...]


@dataclass
class Ledger:
    """All requests and answers of the clients; bookings by idempotency key."""

    bookings: dict[str, Booking] = field(default_factory=dict)
    tries: list[Try] = field(default_factory=list)
    pages: list[Page] = field(default_factory=list)

    @property
    def acknowledged(self) -> dict[str, str]:
        """Return the id of the confirmed booking of each key."""
        return {attempt.key: attempt.booking for attempt in self.tries if attempt.booking}


def read(file: Path) -> Ledger:
    """Read the ledger from k6's console output, in JSON lines."""
    ledger = Ledger()
    for text in file.read_text().splitlines():
        message = json.loads(text)["msg"]
        if message.startswith("{"):
            _add(ledger, json.loads(message))
    return ledger


def _add(ledger: Ledger, line: dict[str, Any]) -> None:
    if line["line"] == "wish":
        ledger.bookings[line["key"]] = parse_booking(line)
    elif line["line"] == "booking":
        ledger.tries.append(Try(**_answer(line), key=line["key"], booking=line["id"]))
    else:
        stale = (line["stale_ms"] or 0) / 1000
        ledger.pages.append(Page(**_answer(line), cache=line["cache"], stale=stale))


def parse_booking(line: dict[str, Any]) -> Booking:
    """Return the booking from the format that the clients and the database share."""
    customers = tuple(sorted(line["customers"]))
    return Booking(line["suite"], line["check_in"], line["check_out"], customers)


def _answer(line: dict[str, Any]) -> dict[str, Any]:
    return {
        "sent_at": line["asked"] / 1000,
        "answered_at": line["answered"] / 1000,
        "status": line["status"],
        "code": line["code"],
        "retry_after": line["retry_after"],
    }
