"""The log of the load during a fault: lines written by k6/scenarios/faults.js."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Answer:
    """Result of one request; `status` is 0 without an answer. Unix times, durations in seconds."""

    asked: float
    answered: float
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
class Wish:
    """The content of a booking request; customers sorted by id."""

    suite: str
    check_in: str
    check_out: str
    customers: tuple[str, ...]


@dataclass
class Ledger:
    """All requests and answers of the clients; wishes by idempotency key."""

    wishes: dict[str, Wish] = field(default_factory=dict)
    tries: list[Try] = field(default_factory=list)
    pages: list[Page] = field(default_factory=list)

    @property
    def acknowledged(self) -> dict[str, str]:
        """Return the id of the confirmed booking of each key."""
        return {each.key: each.booking for each in self.tries if each.booking}


def read(file: Path) -> Ledger:
    """Read the ledger from k6's console output, in JSON lines."""
    found = Ledger()
    for line in file.read_text().splitlines():
        message = json.loads(line)["msg"]
        if message.startswith("{"):
            _enter(found, json.loads(message))
    return found


def _enter(ledger: Ledger, said: dict[str, Any]) -> None:
    if said["line"] == "wish":
        ledger.wishes[said["key"]] = wish_of(said)
    elif said["line"] == "booking":
        ledger.tries.append(Try(**_answer(said), key=said["key"], booking=said["id"]))
    else:
        stale = (said["stale_ms"] or 0) / 1000
        ledger.pages.append(Page(**_answer(said), cache=said["cache"], stale=stale))


def wish_of(said: dict[str, Any]) -> Wish:
    """Return the wish from the format that the clients and the database share."""
    customers = tuple(sorted(said["customers"]))
    return Wish(said["suite"], said["check_in"], said["check_out"], customers)


def _answer(said: dict[str, Any]) -> dict[str, Any]:
    return {
        "asked": said["asked"] / 1000,
        "answered": said["answered"] / 1000,
        "status": said["status"],
        "code": said["code"],
        "retry_after": said["retry_after"],
    }
