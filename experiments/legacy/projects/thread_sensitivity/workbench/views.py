"""The five views of the source, and the verification of the stack."""
import inspect
import random
import threading
import time

from asgiref.sync import SyncToAsync
from django.db import connection, transaction
from rest_framework.decorators import api_view
from rest_framework.response import Response

import lab_verify

from .models import ROWS, Row

SECONDS = 0.5


def _sleep_twice():
    time.sleep(SECONDS)
    time.sleep(SECONDS)


@api_view(["GET"])
def sleep(request):
    _sleep_twice()
    return Response({"slept": 2 * SECONDS})


@api_view(["GET"])
def read_sleep(request):
    row = Row.objects.order_by("id").first()
    _sleep_twice()
    return Response({"row": row.id, "slept": 2 * SECONDS})


def _hold(rows):
    with transaction.atomic():
        row = rows.select_for_update().first()
        _sleep_twice()
    return Response({"row": row.id, "slept": 2 * SECONDS})


@api_view(["GET"])
def row_lock(request):
    return _hold(Row.objects.order_by("id"))


@api_view(["GET"])
def random_row_lock(request):
    return _hold(Row.objects.filter(id=random.randint(1, ROWS)))


@api_view(["GET"])
def pg_sleep(request):
    with connection.cursor() as cursor:
        for _ in range(2):
            cursor.execute("SELECT pg_sleep(%s)", [SECONDS])
    return Response({"slept": 2 * SECONDS})


@api_view(["GET"])
def verify(request):
    scope = getattr(request._request, "scope", None)
    default = inspect.signature(SyncToAsync.__init__).parameters["thread_sensitive"].default
    return Response({
        **lab_verify.versions(),
        "server": scope["lab_server"] if scope else lab_verify.server(),
        "interface": "asgi" if scope else "wsgi",
        "thread_sensitive": default,
        "thread": threading.current_thread().name,
    })
