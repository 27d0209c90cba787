"""Tables that the routes read, write and lock."""

from django.db import models


class Post(models.Model):
    title = models.CharField(max_length=200)
    content = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        # The order of the primary key: the first 25 are found without sorting a million.
        ordering = ("id",)

    def __str__(self) -> str:
        return self.title


class LockRow(models.Model):
    """A row to lock. There are data.LOCK_ROWS, numbered from 1."""

    name = models.CharField(max_length=20)

    class Meta:
        ordering = ("id",)

    def __str__(self) -> str:
        return self.name
