"""What the load wrote down while something broke: k6/scenarios/faults.js, line by line."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Answer:
    """One request's end; `status` is 0 where no answer came. Unix times and spans in seconds."""

    asked: float
    answered: float
    status: int
    code: str | None = None
    retry_after: float | None = None


@dataclass(frozen=True)
class Try(Answer):
    """Of a booking, whose tries have one key; `booking` is its id when it was made."""

    key: str = ""
    booking: str | None = None


@dataclass(frozen=True)
class Page(Answer):
    """A hotel's page; `stale`: superseded for so long, at least, when it was asked for."""

    cache: str | None = None
    stale: float = 0


@dataclass(frozen=True)
class Wish:
    """What a booking asked for; customers in the order of their ids."""

    suite: str
    check_in: str
    check_out: str
    customers: tuple[str, ...]


@dataclass
class Ledger:
    """All that the clients saw; wishes by their keys."""

    wishes: dict[str, Wish] = field(default_factory=dict)
    tries: list[Try] = field(default_factory=list)
    pages: list[Page] = field(default_factory=list)

    @property
    def acknowledged(self) -> dict[str, str]:
        """The booking that each key was told is made."""
        return {each.key: each.booking for each in self.tries if each.booking}


def read(file: Path) -> Ledger:
    """The ledger in k6's console output, as JSON lines."""
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
    """As the clients and the database write it."""
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
