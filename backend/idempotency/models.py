"""The answers that were given to requests with an Idempotency-Key."""

from django.db import models


class StoredAnswer(models.Model):
    key = models.CharField(max_length=255, primary_key=True)
    # SHA-256 of the request's values, to tell a repeat from another request under the same key.
    fingerprint = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField()
    body = models.JSONField()
    created_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return self.key
