"""Idempotency-Key: a request has one effect, however often a client sends it.

After the IETF draft draft-ietf-httpapi-idempotency-key-header: the same key and body get the first
response again, another body gets 422, and a request that is still in progress 409.
"""

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import orjson
from config.http.errors import RETRY_AFTER_SECONDS, ApplicationError, WrongInput
from config.postgres import prepared
from django.db import transaction

LIFETIME = timedelta(hours=24)

KEY_MALFORMED = "Must be 1 to 255 printable ASCII characters, without spaces."
IN_PROGRESS = "The first request with this Idempotency-Key is still in progress."
BODY_DIFFERS = "This Idempotency-Key was used with a different body."

KEY_PATTERN = r"[\x21-\x7e]{1,255}"
_KEY = re.compile(KEY_PATTERN)

_LOCK_AND_FETCH, _FETCH, _STORE = (
    prepared.statement("idempotency", name) for name in ("lock_and_fetch", "fetch", "store")
)


@dataclass(frozen=True)
class StoredRow:
    """The stored response of a key, and the fingerprint of its request."""

    fingerprint: str
    status: int
    # JSON.
    body: str


@dataclass(frozen=True)
class Answer:
    """An HTTP response that is the same for every repeat of its request."""

    status: int
    body: dict[str, Any]
    headers: dict[str, str] = field(default_factory=dict)


def read_key(meta: Mapping[str, Any]) -> str | None:
    """Return the key of the request with this META, or None.

    `request.headers` would first be built from all of META.

    Raises:
        WrongInput: the key is malformed.
    """
    key = meta.get("HTTP_IDEMPOTENCY_KEY")
    if key is not None and not _KEY.fullmatch(key):
        raise WrongInput({"Idempotency-Key": [KEY_MALFORMED]})
    return key


@dataclass(frozen=True)
class Claim:
    """A request that may be the first with its key."""

    key: str
    fingerprint: str

    def parameters(self, answer: Answer) -> dict[str, Any]:
        """Return the parameters of a statement that also stores `answer` for the key
        (book_once.sql).
        """
        return {**_stored_values(self.key, self.fingerprint, answer), "lock": lock_number(self.key)}


def answer_once(
    key: str | None,
    values: dict[str, Any],
    act: Callable[[dict[str, Any]], Answer],
    at_once: Callable[[Claim, dict[str, Any]], Answer | None] | None = None,
) -> Answer:
    """Return the response of `act(values)`, or the stored response of this key.

    Errors of `act` are not stored: the client can fix its request and use the key again. `at_once`
    is a faster variant for requests that succeed. If it returns None, it had no effect, and `act`
    finds the reason.

    Raises:
        ApplicationError: the key's first request is still in progress, or had other values.
    """
    if key is None:
        return act(values)
    fingerprint = hashlib.sha256(orjson.dumps(values, option=orjson.OPT_SORT_KEYS)).hexdigest()
    answer = at_once(Claim(key, fingerprint), values) if at_once else None
    return answer or _answer_once(key, fingerprint, values, act)


def _answer_once(
    key: str, fingerprint: str, values: dict[str, Any], act: Callable[[dict[str, Any]], Answer]
) -> Answer:
    try:
        with transaction.atomic():
            stored = _lock_and_fetch(key)
            if stored is None:
                return _store(key, fingerprint, act(values))
    except ApplicationError:
        # Lookup and lock are one statement, whose snapshot is older than the lock: the previous
        # holder may have stored its response in between. This transaction is rolled back by now,
        # and that response is visible.
        stored = _fetch(key)
        if stored is None:
            raise
    return _replay(stored, fingerprint)


def _lock_and_fetch(key: str) -> StoredRow | None:
    """Return the key's stored response, or None after taking the key's lock.

    Raises:
        ApplicationError: there is no response, and another request has the lock.
    """
    row = prepared.row(
        _LOCK_AND_FETCH, {"key": key, "lock": lock_number(key), "lifetime": LIFETIME}
    )
    locked, fingerprint, status, body = row or (False, None, None, None)
    if fingerprint is not None:
        return StoredRow(fingerprint, status, body)
    if not locked:
        raise _in_progress()
    return None


def lock_number(key: str) -> int:
    """Return the number of the key's advisory lock: a bigint that two keys share only by chance."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], signed=True)


def _fetch(key: str) -> StoredRow | None:
    row = prepared.row(_FETCH, {"key": key, "lifetime": LIFETIME})
    return None if row is None else StoredRow(*row)


def _store(key: str, fingerprint: str, answer: Answer) -> Answer:
    """Store `answer` and return it.

    Raises:
        ApplicationError: the key has a response by now, so this request must be rolled back.
    """
    if prepared.row(_STORE, _stored_values(key, fingerprint, answer)) is None:
        raise _in_progress()
    return answer


def _stored_values(key: str, fingerprint: str, answer: Answer) -> dict[str, Any]:
    body = orjson.dumps(answer.body).decode()
    columns = {"fingerprint": fingerprint, "status": answer.status, "body": body}
    return {"key": key, "lifetime": LIFETIME, **columns}


def _replay(stored: StoredRow, fingerprint: str) -> Answer:
    if stored.fingerprint != fingerprint:
        raise ApplicationError("key_reused", BODY_DIFFERS, 422)
    return Answer(stored.status, orjson.loads(stored.body), {"Idempotency-Replayed": "true"})


def _in_progress() -> ApplicationError:
    return ApplicationError("in_progress", IN_PROGRESS, 409, retry_after=RETRY_AFTER_SECONDS)
