"""The backend's routes for the lab itself. Nginx returns 404 for all of them."""

import os
import platform
from typing import Any

import django
import rest_framework
from config.http import errors
from config.server import caller
from django.conf import settings
from django.db import connection
from django.http import Http404, JsonResponse
from drf_spectacular.utils import extend_schema
from hotels.models import Hotel
from observability import latency
from rest_framework.decorators import api_view
from rest_framework.request import Request

from ops.token import has_lab_token

NO_DATA = "No data is loaded. Load it: manage.py load_db"
NO_DATABASE = "Postgres is unavailable: {reason}"


@extend_schema(exclude=True)
@api_view(["GET"])
def healthz(_request: Request) -> JsonResponse:
    """Return 200 while the process runs. Checks nothing else."""
    return JsonResponse({"status": "ok"})


@extend_schema(exclude=True)
@api_view(["GET"])
def readyz(_request: Request) -> JsonResponse:
    """Return 200 if Postgres responds and has data, otherwise 503."""
    try:
        has_data = Hotel.objects.exists()
    except Exception as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        return _not_ready("database", NO_DATABASE.format(reason=reason[0]))
    return JsonResponse({"status": "ok"}) if has_data else _not_ready("no_data", NO_DATA)


@extend_schema(exclude=True)
@api_view(["GET"])
def lab_settings(request: Request) -> JsonResponse:
    """Return this process's active settings and versions. Requires the lab's token."""
    if not has_lab_token(request):
        raise Http404
    return JsonResponse(
        {
            "settings": settings.LAB.of_backend(),
            "debug": settings.DEBUG,
            "server": _server(request),
            "versions": _versions(),
            "pid": os.getpid(),
        }
    )


@extend_schema(exclude=True)
@api_view(["GET"])
def lab_latency(request: Request) -> JsonResponse:
    """Measure the latency of Postgres from this process. Requires the lab's token."""
    if not has_lab_token(request):
        raise Http404
    return JsonResponse(latency.measure())


def _server(request: Request) -> dict[str, Any]:
    """Return the server that really calls Django, and its properties, to verify LAB_SERVER."""
    return {
        "kind": caller.server(),
        "software": caller.software(),
        "multithread": request.META.get("wsgi.multithread"),
        "is_stock": settings.DATABASES["default"]["ENGINE"].startswith("django."),
        "conn_max_age": connection.settings_dict["CONN_MAX_AGE"],
    }


def _versions() -> dict[str, str]:
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version")
        (postgres,) = cursor.fetchone()
    return {
        "django": django.get_version(),
        "drf": rest_framework.VERSION,
        "python": platform.python_version(),
        "postgres": postgres,
    }


def _not_ready(code: str, message: str) -> JsonResponse:
    return JsonResponse(errors.body(code, message), status=503, headers={"Retry-After": "1"})
