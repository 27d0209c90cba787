"""The routes as coroutines. The docstrings describe what still runs in a thread.

Django's asynchronous queries are its synchronous ones in a thread: under ASGI each request has a
separate one, under WSGI it is the request's thread.
"""

import asyncio

from asgiref.sync import sync_to_async
from django.http import HttpRequest, JsonResponse

from workbench import inputs, layer, work
from workbench.models import LockRow, Post


async def cpu(request: HttpRequest) -> JsonResponse:
    """Run on the event loop, as in the source. It blocks all other requests of its process."""
    n = inputs.cpu_size(request)
    return JsonResponse({"n": n, "sum": work.sum_of_squares(n)})


async def io_read(_request: HttpRequest) -> JsonResponse:
    """Run both queries in the request's thread; the event loop stays free."""
    posts = [post async for post in work.first_posts()]
    return JsonResponse({"count": await Post.objects.acount(), "posts": posts})


async def io_create(request: HttpRequest) -> JsonResponse:
    """Run the INSERT in the request's thread."""
    post = await Post.objects.acreate(**inputs.post_fields(request))
    return JsonResponse({"id": post.pk}, status=201)


async def sleep(request: HttpRequest) -> JsonResponse:
    """Sleep without a thread."""
    return await _sleep(inputs.sleep_seconds(request))


async def read_sleep(request: HttpRequest) -> JsonResponse:
    """Run the query in the request's thread, and sleep without one."""
    seconds = inputs.sleep_seconds(request)
    await LockRow.objects.afirst()
    return await _sleep(seconds)


async def row_lock(request: HttpRequest) -> JsonResponse:
    """Run in the request's thread from BEGIN to COMMIT, including the sleeps.

    Django has no asynchronous transactions, and a transaction must stay on one thread's connection.
    """
    seconds = inputs.sleep_seconds(request)
    return JsonResponse({"row": await sync_to_async(work.sleep_holding_first_row)(seconds)})


async def random_row_lock(request: HttpRequest) -> JsonResponse:
    """Run in the request's thread from BEGIN to COMMIT, like `row_lock`."""
    seconds = inputs.sleep_seconds(request)
    return JsonResponse({"row": await sync_to_async(work.sleep_holding_random_row)(seconds)})


async def pg_sleep(request: HttpRequest) -> JsonResponse:
    """Run in the request's thread: Django has no asynchronous cursor."""
    seconds = inputs.sleep_seconds(request)
    await sync_to_async(work.sleep_in_postgres)(seconds)
    return JsonResponse({"slept": work.SLEEPS * seconds})


async def hello(_request: HttpRequest) -> JsonResponse:
    return JsonResponse({"hello": "world"})


async def layer_hello(_request: HttpRequest) -> JsonResponse:
    """Run without a thread: the Redis client is asynchronous."""
    return JsonResponse(await layer.request_hello())


async def _sleep(seconds: float) -> JsonResponse:
    for _ in range(work.SLEEPS):
        await asyncio.sleep(seconds)
    return JsonResponse({"slept": work.SLEEPS * seconds})
