"""Values of the enumerated settings, which declaration.py describes."""

from enum import StrEnum


class EngineChoice(StrEnum):
    AUTO = "auto"
    DOCKER = "docker"
    NATIVE = "native"


class Server(StrEnum):
    GUNICORN_SYNC = "gunicorn-sync"
    GUNICORN_GTHREAD = "gunicorn-gthread"
    GUNICORN_UVICORN = "gunicorn-uvicorn"
    GUNICORN_ASGI = "gunicorn-asgi"
    UVICORN = "uvicorn"
    DAPHNE = "daphne"
    GRANIAN = "granian"

    @property
    def is_asgi(self) -> bool:
        """Whether the server calls Django by ASGI; the others use WSGI."""
        return self not in (Server.GUNICORN_SYNC, Server.GUNICORN_GTHREAD)


class SecondServer(StrEnum):
    OFF = "off"
    UVICORN = "uvicorn"
    DAPHNE = "daphne"
    GRANIAN = "granian"


class Views(StrEnum):
    SYNC = "sync"
    ASYNC = "async"


class Direction(StrEnum):
    OUTGOING = "outgoing"
    INCOMING = "incoming"


class Implementation(StrEnum):
    NAIVE = "naive"
    FAST = "fast"


class LocalCache(StrEnum):
    OFF = "off"
    LRU = "lru"


class RedisCache(StrEnum):
    OFF = "off"
    PAGE = "page"
    VERSIONED = "versioned"


class NginxCache(StrEnum):
    OFF = "off"
    BASIC = "basic"
    PROTECTED = "protected"


class Switch(StrEnum):
    OFF = "off"
    ON = "on"
