"""Authentication of the lab's own requests."""

import hmac

from django.conf import settings
from django.http import HttpRequest


def has_lab_token(request: HttpRequest) -> bool:
    """Return whether the request has the lab's secret in X-Lab-Token."""
    token = request.META.get("HTTP_X_LAB_TOKEN", "")
    return hmac.compare_digest(token.encode(), settings.LAB_TOKEN.encode())
