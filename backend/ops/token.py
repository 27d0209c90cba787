"""Authentication of the lab's own requests."""

import hmac

from django.conf import settings
from django.http import HttpRequest


def has_lab_token(request: HttpRequest) -> bool:
    """Return whether the request has the lab's secret in X-Lab-Token; an empty secret matches
    none.
    """
    token = request.META.get("HTTP_X_LAB_TOKEN", "")
    return bool(settings.LAB_TOKEN) and hmac.compare_digest(
        token.encode(), settings.LAB_TOKEN.encode()
    )
