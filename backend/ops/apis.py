"""The backend's routes for the lab itself; Nginx closes all of them."""

import hmac
import os
import platform

import django
from config import errors
from django.conf import settings
from django.db import connection
from django.http import Http404, HttpRequest, JsonResponse
from django.views.decorators.http import require_GET
from hotels.models import Hotel

NO_DATA = "No data is loaded. Load it: manage.py load_db"
NO_DATABASE = "Postgres does not answer: {reason}"


@require_GET
def healthz(_request: HttpRequest) -> JsonResponse:
    """The process lives; nothing else is asked."""
    return JsonResponse({"status": "ok"})


@require_GET
def readyz(_request: HttpRequest) -> JsonResponse:
    """Postgres answers, and there is something to serve."""
    try:
        loaded = Hotel.objects.exists()
    except Exception as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        return _not_ready("database", NO_DATABASE.format(reason=reason[0]))
    return JsonResponse({"status": "ok"}) if loaded else _not_ready("no_data", NO_DATA)


@require_GET
def lab_settings(request: HttpRequest) -> JsonResponse:
    """What is really active in this process, for whoever holds the lab's token."""
    token = request.headers.get("X-Lab-Token", "")
    if not hmac.compare_digest(token.encode(), settings.LAB_TOKEN.encode()):
        raise Http404
    return JsonResponse(
        {"settings": settings.LAB.as_env(), "versions": _versions(), "pid": os.getpid()}
    )


def _versions() -> dict[str, str]:
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version")
        (postgres,) = cursor.fetchone()
    return {
        "django": django.get_version(),
        "python": platform.python_version(),
        "postgres": postgres,
    }


def _not_ready(code: str, message: str) -> JsonResponse:
    return JsonResponse(errors.body(code, message), status=503, headers={"Retry-After": "1"})
