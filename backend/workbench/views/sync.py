"""The routes as synchronous functions. views/async_.py has the same names."""

import time

from asgiref.sync import async_to_sync
from django.http import HttpRequest, JsonResponse

from workbench import inputs, layer, work
from workbench.models import LockRow, Post


def cpu(request: HttpRequest) -> JsonResponse:
    n = inputs.cpu_size(request)
    return JsonResponse({"n": n, "sum": work.sum_of_squares(n)})


def io_read(_request: HttpRequest) -> JsonResponse:
    posts = list(work.first_posts())
    return JsonResponse({"count": Post.objects.count(), "posts": posts})


def io_create(request: HttpRequest) -> JsonResponse:
    post = Post.objects.create(**inputs.post_fields(request))
    return JsonResponse({"id": post.pk}, status=201)


def sleep(request: HttpRequest) -> JsonResponse:
    return _sleep(inputs.sleep_seconds(request))


def read_sleep(request: HttpRequest) -> JsonResponse:
    seconds = inputs.sleep_seconds(request)
    LockRow.objects.first()
    return _sleep(seconds)


def row_lock(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"row": work.sleep_holding_first_row(inputs.sleep_seconds(request))})


def random_row_lock(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"row": work.sleep_holding_random_row(inputs.sleep_seconds(request))})


def pg_sleep(request: HttpRequest) -> JsonResponse:
    seconds = inputs.sleep_seconds(request)
    work.sleep_in_postgres(seconds)
    return JsonResponse({"slept": work.SLEEPS * seconds})


def hello(_request: HttpRequest) -> JsonResponse:
    return JsonResponse({"hello": "world"})


def layer_hello(_request: HttpRequest) -> JsonResponse:
    return JsonResponse(async_to_sync(layer.request_hello)())


def _sleep(seconds: float) -> JsonResponse:
    for _ in range(work.SLEEPS):
        time.sleep(seconds)
    return JsonResponse({"slept": work.SLEEPS * seconds})
