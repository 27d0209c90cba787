"""A plain Django project that connects to its database for each request, as is Django's default."""

import json
import os
import sys

from django.conf import settings
from django.core.asgi import get_asgi_application
from django.core.management import execute_from_command_line
from django.core.wsgi import get_wsgi_application
from django.db import connection
from django.http import JsonResponse
from django.urls import path
from django.views.decorators.http import require_GET

settings.configure(
    SECRET_KEY="only for tests",
    ROOT_URLCONF=__name__,
    ALLOWED_HOSTS=["*"],
    INSTALLED_APPS=[],
    # ENGINE, HOST, PORT, …
    DATABASES={"default": json.loads(os.environ.get("SHOP_DATABASE", "{}"))},
    CACHES={
        "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
        "pages": {
            "BACKEND": "django.core.cache.backends.redis.RedisCache",
            "LOCATION": os.environ.get("SHOP_CACHE", ""),
        },
    },
)


@require_GET
def items(request):
    # Without a database: a page of static text.
    if not connection.settings_dict["ENGINE"].endswith("dummy"):
        with connection.cursor() as cursor:
            cursor.execute("SELECT sum(n) FROM generate_series(1, 2000) AS n")
    return JsonResponse({"items": []})


@require_GET
def total(request):
    # Some milliseconds of CPU time.
    return JsonResponse({"total": sum(range(300_000))})


@require_GET
def home(request):
    return JsonResponse({})


urlpatterns = [path("", home), path("items/", items), path("total/", total)]
application = get_wsgi_application()
asgi = get_asgi_application()

if __name__ == "__main__":
    print("what a project prints while it starts")
    execute_from_command_line(sys.argv)
