"""The work of the routes, for both variants of the views."""

import random
import time
from typing import Any

from config.http.errors import RETRY_AFTER_SECONDS, ApplicationError
from django.db import connection, transaction
from django.db.models import QuerySet

from workbench.data import LOCK_ROWS
from workbench.models import LockRow, Post

# As published: two sleeps of half a second, unless the request sets another duration.
SLEEPS = 2
MAX_POSTS = 25

NO_ROWS = "The table has no rows to lock. Load them: manage.py load_db --workbench"


def sum_of_squares(n: int) -> int:
    """Return the sum of i*i for the first `n` numbers, added one by one as CPU work."""
    return sum(i * i for i in range(n))


def first_posts() -> QuerySet[Post, Any]:
    """Return the posts of the read route, as dictionaries."""
    return Post.objects.values("id", "title", "content", "created_at")[:MAX_POSTS]


def sleep_holding_first_row(seconds: float) -> int:
    """Sleep in a transaction that locks the same row in every request. Return the row's id."""
    with transaction.atomic():
        return _sleep_with_lock(LockRow.objects.select_for_update().first(), seconds)


def sleep_holding_random_row(seconds: float) -> int:
    """Do the same with one random row of a hundred, so that requests rarely conflict."""
    row_id = random.randint(1, LOCK_ROWS)  # noqa: S311 - a load, not a secret
    with transaction.atomic():
        return _sleep_with_lock(
            LockRow.objects.select_for_update().filter(pk=row_id).first(), seconds
        )


def sleep_in_postgres(seconds: float) -> None:
    """Sleep in Postgres: the client only waits for its socket."""
    with connection.cursor() as cursor:
        for _ in range(SLEEPS):
            cursor.execute("SELECT pg_sleep(%s)", [seconds])


def _sleep_with_lock(row: LockRow | None, seconds: float) -> int:
    if row is None:
        raise ApplicationError("no_data", NO_ROWS, 503, retry_after=RETRY_AFTER_SECONDS)
    for _ in range(SLEEPS):
        time.sleep(seconds)
    return row.pk
