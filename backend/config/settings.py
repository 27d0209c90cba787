"""Django's settings. Whatever moves the numbers is explicit here and comes from `config.env`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab_settings.kinds import Switch

from config import env
from config.postgres import pool

BASE_DIR = Path(__file__).resolve().parents[1]
LAB = env.lab_settings()

SECRET_KEY = env.secret("secret_key")
LAB_TOKEN = env.secret("lab_token")
DEBUG = False
# Host names are Nginx's business; the backend's port is open to the lab alone.
ALLOWED_HOSTS = env.text("BACKEND_ALLOWED_HOSTS").split(",")

# A redirect would turn a POST without the slash into a GET; 404 says what is wrong.
APPEND_SLASH = False

ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
ASGI_APPLICATION = "config.asgi.application"


@dataclass(frozen=True)
class _Django:
    """What of Django and DRF the lab has a quicker form of."""

    database: str
    negotiation: str
    middleware: tuple[str, ...]


# As most of us would run it: what a naive position is measured with.
_STOCK = _Django(
    database="django.db.backends.postgresql",
    negotiation="config.http.content.ContentNegotiation",
    middleware=(
        "django.middleware.security.SecurityMiddleware",
        "django.middleware.common.CommonMiddleware",
        "django.middleware.clickjacking.XFrameOptionsMiddleware",
    ),
)
_QUICK = _Django(
    database="config.postgres",
    negotiation="config.http.content.QuickNegotiation",
    middleware=(
        "config.http.middleware.Security",
        "config.http.middleware.Common",
        "config.http.middleware.XFrameOptions",
    ),
)
_DJANGO = _STOCK if LAB.is_stock else _QUICK

INSTALLED_APPS = [
    "django.contrib.postgres",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "hotels",
    "idempotency",
    "ops",
]
# What an experiment switches on; absent otherwise, with its routes.
if LAB.LAB_WORKBENCH is Switch.ON:
    # `channels` has the command that runs the worker, and asks for the application's name; servers
    # are told theirs.
    INSTALLED_APPS += ["channels", "workbench"]
    ASGI_APPLICATION = "workbench.consumers.application"
if LAB.LAB_WEBSOCKETS is Switch.ON:
    INSTALLED_APPS += ["live"]
# No sessions, no cookies, no users: nothing here may make an answer private.
MIDDLEWARE = [
    "observability.middleware.RequestMetrics",
    "ops.shedding.Shedding",
    "config.http.middleware.ContentSecurityPolicy",
    *_DJANGO.middleware,
]
# For the Swagger page alone.
TEMPLATES = [
    {"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True, "OPTIONS": {}}
]
STATIC_URL = "static/"


def _connection_handling() -> dict[str, Any]:
    """psycopg's pool, or Django's own handling: the two exclude each other."""
    if LAB.pool_size is None:
        # Under ASGI each request has a thread of its own; nobody would have its connection later.
        age = 0 if env.is_asgi() else LAB.LAB_CONN_MAX_AGE
        return {"CONN_MAX_AGE": age, "OPTIONS": {}}
    options = pool.options(LAB.pool_size, LAB.LAB_DB_CONNECT_TIMEOUT)
    # config.postgres looks at what the pool gives; psycopg's own check pauses between two of them.
    return {"CONN_MAX_AGE": 0, "CONN_HEALTH_CHECKS": False, "OPTIONS": {"pool": options}}


def _postgres_address() -> dict[str, str]:
    """Straight, or by the proxy that delays: of that one the server alone is told, no command."""
    delayed = env.address("BACKEND_DELAYED_POSTGRES") if LAB.is_delayed else None
    host, port = delayed or (env.text("PGHOST"), env.text("PGPORT"))
    return {"HOST": host, "PORT": port}


_HANDLING = _connection_handling()

DATABASES = {
    "default": {
        "ENGINE": _DJANGO.database,
        **_postgres_address(),
        "NAME": env.text("PGDATABASE"),
        "USER": env.text("PGUSER"),
        "PASSWORD": env.secret("hotel_password"),
        # A transaction per request would hide which statements need one.
        "ATOMIC_REQUESTS": False,
        # A persistent connection that Postgres closed is replaced.
        "CONN_HEALTH_CHECKS": True,
        **_HANDLING,
        "OPTIONS": {
            **_HANDLING["OPTIONS"],
            "connect_timeout": LAB.LAB_DB_CONNECT_TIMEOUT,
            "application_name": "load-lab",
            # Who says that it is Postgres, and asks for the password itself, does not get it. Other
            # logins than SCRAM can be measured (docs/latency.md).
            "require_auth": "!password",
            # How often a connection has seen a statement of config.postgres.prepared before
            # Postgres keeps it prepared: one that serves a single request prepares nothing, which
            # would cost it a round trip. psycopg's default; Django's is never.
            "prepare_threshold": None if LAB.is_stock else 5,
            "options": (
                f"-c statement_timeout={LAB.LAB_DB_STATEMENT_TIMEOUT}s"
                f" -c lock_timeout={LAB.LAB_DB_LOCK_TIMEOUT}s"
                # hotels/sql/suites.sql takes a date as Postgres writes it. Default: the role's.
                " -c DateStyle=ISO"
            ),
        },
    }
}
CACHES = {
    "default": {
        "BACKEND": "django_redis.cache.RedisCache",
        "LOCATION": env.text("BACKEND_REDIS_URL"),
        "OPTIONS": {
            "PASSWORD": env.secret("redis_password"),
            "REDIS_CLIENT_CLASS": "hotels.caching.guard.GuardedRedis",
            # Written in C; named, so that its absence is an error instead of a slow cache.
            "PARSER_CLASS": "redis.connection._HiredisParser",
            # A cache that is away is a miss. The guard logs it.
            "IGNORE_EXCEPTIONS": True,
            # Seconds for one reply, and for one connection. With shorter ones a busy CPU looks like
            # a Redis that hangs (docs/measured/caching.md). A pool made here does not retry.
            "SOCKET_TIMEOUT": 0.08,
            "SOCKET_CONNECT_TIMEOUT": 0.08,
            # Nothing but the password is said before the first command: RESP 2 needs no greeting.
            "CONNECTION_POOL_KWARGS": {
                "protocol": 2,
                "driver_info": None,
                # Beyond LAB_THREADS' most: a full pool would look like a Redis that is gone.
                # Default: 100.
                "max_connections": 2048,
            },
        },
    }
}
# Database 1 of the caches' Redis. What is in it is on its way: emptying the caches between two
# loads takes it along, when nobody waits for it. Subscriptions and waiting workers are no data.
_CHANNELS = {
    "address": f"{env.text('BACKEND_REDIS_URL').rpartition('/')[0]}/1",
    "password": env.secret("redis_password"),
}
CHANNEL_LAYERS = {
    # For the workbench: a queue of messages, each taken by one worker.
    "default": {
        "BACKEND": "channels_redis.core.RedisChannelLayer",
        "CONFIG": {
            # Longer than the 5 s for which it asks at a time: Redis's client gives up after 5 by
            # default, and a worker without work would end each time.
            "hosts": [{**_CHANNELS, "socket_timeout": 15}],
            # Messages that may wait on one channel before senders are refused. The published load
            # has 500 users, and never more requests than that at once. Default: 100.
            "capacity": 2000,
            # Seconds; who asked has given up long before. Default: 60.
            "expiry": 10,
        },
    },
    # For WebSockets: Redis's publish and subscribe, with a queue without bound in the process that
    # holds the connections. The layer above drops what exceeds a connection's capacity unseen.
    "live": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [_CHANNELS]},
    },
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# A booking is under 1 KB; Nginx has the same limit.
DATA_UPLOAD_MAX_MEMORY_SIZE = 64 * 1024

REST_FRAMEWORK = {
    # One renderer, so that no answer says `Vary: Accept`.
    "DEFAULT_RENDERER_CLASSES": ["config.http.content.OneFormJSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["config.http.content.BoundedJSONParser"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": _DJANGO.negotiation,
    "DEFAULT_AUTHENTICATION_CLASSES": [],
    "DEFAULT_PERMISSION_CLASSES": [],
    "UNAUTHENTICATED_USER": None,
    "EXCEPTION_HANDLER": "config.http.errors.exception_handler",
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    # The schema's view would write any other `?version=` into a header: a line end there is a 500.
    "ALLOWED_VERSIONS": ["1.0.0"],
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Hotel booking",
    "DESCRIPTION": "The reference application of the load lab.",
    "VERSION": "1.0.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    # No address of ours is sent to an online validator. Default: it is, unless it is localhost's.
    "SWAGGER_UI_SETTINGS": {"deepLinking": True, "validatorUrl": None},
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
}

USE_TZ = True
TIME_ZONE = "UTC"
USE_I18N = False

# TLS ends in front of the lab, and there is no browser session to protect.
SILENCED_SYSTEM_CHECKS = [
    "security.W001",  # _QUICK has SecurityMiddleware under a name of its own
    "security.W002",  # and XFrameOptionsMiddleware
    "security.W003",  # no forms, hence no CSRF middleware
    "security.W004",  # HSTS belongs to whoever ends TLS
    "security.W008",  # so does the redirect to it
]

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": "WARNING"},
    # 4xx and 503 answers are counted by the metrics; a line each would slow the target down, and a
    # target that sheds most of all.
    "filters": {
        "not_503": {
            "()": "django.utils.log.CallbackFilter",
            "callback": lambda record: getattr(record, "status_code", None) != 503,
        }
    },
    "loggers": {"django.request": {"level": "ERROR", "filters": ["not_503"]}},
}
