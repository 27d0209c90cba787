"""The routes as coroutines. Each says what of it still runs in a thread.

Django's asynchronous queries are its synchronous ones in a thread: under ASGI each request has one
of its own, under WSGI it is the request's own.
"""

import asyncio

from asgiref.sync import sync_to_async
from django.http import HttpRequest, JsonResponse

from workbench import inputs, layer, work
from workbench.models import LockRow, Post


async def cpu(request: HttpRequest) -> JsonResponse:
    """On the event loop, as in the source: meanwhile its process answers nobody else."""
    n = inputs.cpu_size(request)
    return JsonResponse({"n": n, "sum": work.sum_of_squares(n)})


async def io_read(_request: HttpRequest) -> JsonResponse:
    """Both queries run in the request's thread; the loop is free meanwhile."""
    posts = [post async for post in work.first_posts()]
    return JsonResponse({"count": await Post.objects.acount(), "posts": posts})


async def io_create(request: HttpRequest) -> JsonResponse:
    """The INSERT runs in the request's thread."""
    post = await Post.objects.acreate(**inputs.post_fields(request))
    return JsonResponse({"id": post.pk}, status=201)


async def sleep(request: HttpRequest) -> JsonResponse:
    """Without any thread."""
    return await _slept(inputs.sleep_seconds(request))


async def read_sleep(request: HttpRequest) -> JsonResponse:
    """The query runs in the request's thread, the sleeps in none."""
    seconds = inputs.sleep_seconds(request)
    await LockRow.objects.afirst()
    return await _slept(seconds)


async def row_lock(request: HttpRequest) -> JsonResponse:
    """In the request's thread from begin to commit, sleeps too: Django has no asynchronous
    transactions, and a transaction must stay on one thread's connection.
    """
    seconds = inputs.sleep_seconds(request)
    return JsonResponse({"row": await sync_to_async(work.sleep_holding_first_row)(seconds)})


async def random_row_lock(request: HttpRequest) -> JsonResponse:
    """In the request's thread from begin to commit, like `row_lock`."""
    seconds = inputs.sleep_seconds(request)
    return JsonResponse({"row": await sync_to_async(work.sleep_holding_random_row)(seconds)})


async def pg_sleep(request: HttpRequest) -> JsonResponse:
    """In the request's thread: Django has no asynchronous cursor."""
    seconds = inputs.sleep_seconds(request)
    await sync_to_async(work.sleep_in_postgres)(seconds)
    return JsonResponse({"slept": work.SLEEPS * seconds})


async def hello(_request: HttpRequest) -> JsonResponse:
    return JsonResponse({"hello": "world"})


async def layer_hello(_request: HttpRequest) -> JsonResponse:
    """Without any thread: the client of Redis is asynchronous itself."""
    return JsonResponse(await layer.ask())


async def _slept(seconds: float) -> JsonResponse:
    for _ in range(work.SLEEPS):
        await asyncio.sleep(seconds)
    return JsonResponse({"slept": work.SLEEPS * seconds})
