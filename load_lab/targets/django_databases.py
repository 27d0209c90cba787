"""Print the databases and caches of a Django project as JSON, without names of users or passwords:
`python manage.py shell < django_databases.py`.

It runs in the environment of the project (Django 2.2 or later, Python 3.6 or later) and imports
nothing of the lab; databases.py starts it and reads its output.
"""

import json
import os
import re
from contextlib import suppress
from typing import Any, Iterator  # noqa: UP035 - Python 3.6
from urllib.parse import urlsplit

from django.conf import settings
from django.db import connections

# The project may print its own lines before and after.
BEGIN, END = "<<<databases ", " databases>>>"


def databases() -> "Iterator[Any]":
    for alias in connections:
        # A backend may not be installed, or have no such methods.
        kind, parameters = "", {}
        with suppress(Exception):
            kind = connections[alias].vendor
        with suppress(Exception):
            parameters = connections[alias].get_connection_params()
        declared = settings.DATABASES.get(alias, {})
        engine = declared.get("ENGINE", "").rpartition(".")[2]
        # A project without a database has Django's dummy.
        kind = "none" if engine == "dummy" else kind or engine
        env = os.environ if kind == "postgresql" else {}
        # A service of pg_service.conf has its own.
        by_service = "service" in parameters or bool(env.get("PGSERVICE"))
        host = parameters.get("host") or declared.get("HOST") or env.get("PGHOST")
        port = parameters.get("port") or declared.get("PORT") or env.get("PGPORT")
        yield place(kind, host, port, is_known=bool(host) or not by_service)


def caches() -> "Iterator[Any]":
    for declared in settings.CACHES.values():
        backend = str(declared.get("BACKEND", "")).lower()
        if not re.search("redis|valkey|memcache", backend):
            continue
        locations = declared.get("LOCATION") or []
        texts = re.split("[,;]", locations) if isinstance(locations, str) else locations
        for text in texts:
            # memcached's have no scheme, and unix:/path one slash.
            text = re.sub(r"^unix:(//)?", "unix://", str(text).strip())
            parts = urlsplit(text if "://" in text else "//" + text)
            if parts.scheme == "unix":
                yield place("cache", parts.path, None)
            elif parts.hostname:
                port = 11211 if "memcache" in backend else 6379
                yield place("cache", parts.hostname, parts.port or port)


def place(kind: str, host: Any, port: Any, is_known: bool = True) -> "dict[str, Any]":
    return {
        "kind": str(kind),
        "host": str(host or ""),
        "port": str(port or ""),
        "is_known": is_known,
    }


def readable(found: Any) -> "Iterator[Any]":
    """Yield what can be read: settings may be of any shape."""
    with suppress(Exception):
        yield from found


# Django 2.2 runs this text inside of a function, whose names other functions do not see.
globals().update(locals())
print("\n" + BEGIN + json.dumps([*readable(databases()), *readable(caches())]) + END)
