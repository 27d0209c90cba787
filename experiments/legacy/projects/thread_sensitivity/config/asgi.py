import os

from django.core.asgi import get_asgi_application

import lab_verify

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django_application = get_asgi_application()


async def application(scope, receive, send):
    # A sync view runs in a thread whose call stack does not contain the server.
    if scope.get("path") == "/lab/verify":
        scope["lab_server"] = lab_verify.server()
    await django_application(scope, receive, send)
