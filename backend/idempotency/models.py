"""The stored responses of requests with an Idempotency-Key."""

from django.db import models


class StoredAnswer(models.Model):
    key = models.CharField(max_length=255, primary_key=True)
    # SHA-256 of the request's values, to distinguish a repeat from another request with the same
    # key.
    fingerprint = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField()
    body = models.JSONField()
    created_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return self.key
