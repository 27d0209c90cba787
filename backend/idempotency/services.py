"""One request, one effect, however often a client sends it.

After the IETF draft draft-ietf-httpapi-idempotency-key-header: the same key and body get the first
answer again, another body 422, a request that still runs 409.
"""

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import orjson
from config.errors import RETRY_AFTER_SECONDS, ApplicationError, WrongInput
from django.db import connection, transaction
from django.utils import timezone

from idempotency.models import StoredAnswer

LIFETIME = timedelta(hours=24)

KEY_MALFORMED = "Must be 1 to 255 printable ASCII characters, without spaces."
STILL_RUNNING = "The first request with this Idempotency-Key still runs."
OTHER_BODY = "This Idempotency-Key was used with another body."

_KEY = re.compile(r"[\x21-\x7e]{1,255}")
# Every new answer removes up to this many that are too old, so the table does not grow.
_REMOVED_PER_ANSWER = 2


@dataclass(frozen=True)
class Answer:
    """An HTTP answer that stays the same when its request comes again."""

    status: int
    body: dict[str, Any]
    headers: dict[str, str] = field(default_factory=dict)


def read_key(headers: Mapping[str, str]) -> str | None:
    """The request's key, or None.

    Raises:
        WrongInput: it is malformed.
    """
    key = headers.get("Idempotency-Key")
    if key is not None and not _KEY.fullmatch(key):
        raise WrongInput({"Idempotency-Key": [KEY_MALFORMED]})
    return key


def answer_once(
    key: str | None, values: dict[str, Any], act: Callable[[dict[str, Any]], Answer]
) -> Answer:
    """What `act(values)` answers, or the answer that this key got before.

    What `act` raises is not stored: the client may mend its request and use the key again.

    Raises:
        ApplicationError: the key's first request still runs, or had other values.
    """
    if key is None:
        return act(values)
    fingerprint = hashlib.sha256(orjson.dumps(values, option=orjson.OPT_SORT_KEYS)).hexdigest()
    with transaction.atomic():
        _lock(key)
        stored = _stored(key)
        if stored is not None:
            return _replayed(stored, fingerprint)
        answer = act(values)
        _store(key, fingerprint, answer)
    return answer


def _lock(key: str) -> None:
    """Held to the end of the transaction; whoever comes meanwhile is told at once."""
    number = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], signed=True)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [number])
        (locked,) = cursor.fetchone()
    if not locked:
        raise ApplicationError("in_progress", STILL_RUNNING, 409, retry_after=RETRY_AFTER_SECONDS)


def _stored(key: str) -> StoredAnswer | None:
    alive = timezone.now() - LIFETIME
    return StoredAnswer.objects.filter(key=key, created_at__gt=alive).first()


def _replayed(stored: StoredAnswer, fingerprint: str) -> Answer:
    if stored.fingerprint != fingerprint:
        raise ApplicationError("key_reused", OTHER_BODY, 422)
    return Answer(stored.status, stored.body, {"Idempotency-Replayed": "true"})


def _store(key: str, fingerprint: str, answer: Answer) -> None:
    too_old = StoredAnswer.objects.filter(created_at__lte=timezone.now() - LIFETIME)
    oldest = too_old.order_by("created_at").values("key")[:_REMOVED_PER_ANSWER]
    StoredAnswer.objects.filter(key__in=oldest).delete()
    StoredAnswer.objects.update_or_create(
        key=key,
        defaults={
            "fingerprint": fingerprint,
            "status": answer.status,
            "body": answer.body,
            "created_at": timezone.now(),
        },
    )
