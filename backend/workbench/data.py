"""The workbench's data: the same rows for the same seed and size."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from ops.copying import Row, copy, progress, truncate

from workbench.models import LockRow, Post

# As many as in the source, which locks a random one.
LOCK_ROWS = 100

_FIRST = datetime(2020, 1, 1, tzinfo=UTC)
_INTERVAL = timedelta(minutes=3)
_BATCH = 10_000

_TOPICS = ("Harbours", "Night trains", "Courtyards", "Bridges", "Markets", "Lighthouses", "Saunas")
_ANGLES = ("in winter", "on foot", "by the map", "before noon", "for beginners", "revisited")
_SENTENCES = (
    "The ferry leaves at seven, and whoever misses it has a day more than was planned.",
    "Nobody at the counter knew the price, so we agreed on one and paid it twice.",
    "From the top step one sees the whole bay, two chimneys, and the weather of tomorrow.",
    "It rained until the bakery opened; after that it did not matter any longer.",
    "The map was of another year, which made the walk longer and the story better.",
)


class WorkbenchData:
    """Posts to read, and rows to lock."""

    tables = (Post._meta.db_table, LockRow._meta.db_table)
    command = "load_db --workbench"

    def __init__(self, seed: int, posts: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - repeatable, not secret
        self._posts = posts

    def exists(self) -> bool:
        return Post.objects.exists()

    def describe(self) -> str:
        """Describe the existing data, for an error message."""
        return f"{Post.objects.count()} posts"

    def clear(self) -> None:
        truncate(*self.tables)

    def load(self) -> str:
        """Load the data. Return its description."""
        # The ids must begin at 1. COPY with FREEZE writes rows as after a VACUUM, and requires that
        # the table was emptied in the same transaction, since no other transaction has seen it
        # then.
        self.clear()
        with progress(self._posts) as bar:
            for first in range(0, self._posts, _BATCH):
                rows = self.posts(first, min(_BATCH, self._posts - first))
                columns = ("title", "content", "created_at")
                bar.update(copy(Post._meta.db_table, columns, rows, freeze=True))
        copy(LockRow._meta.db_table, ("name",), ((f"row {n}",) for n in range(1, LOCK_ROWS + 1)))
        return f"{self._posts} posts and {LOCK_ROWS} rows to lock"

    def posts(self, first: int, count: int) -> Iterator[Row]:
        """Yield title, content, created_at of `count` posts. Call it in the order of the posts."""
        samples = (self._random.choices(of, k=count) for of in (_TOPICS, _ANGLES, _SENTENCES))
        for number, (topic, angle, sentence) in enumerate(zip(*samples, strict=True), start=first):
            yield f"{topic} {angle}, {number}", sentence, _FIRST + number * _INTERVAL
