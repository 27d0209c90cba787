"""Django's settings. Values that affect the results are explicit and come from `config.env`."""

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
# Nginx is responsible for host names. Only the lab can reach the backend's port.
ALLOWED_HOSTS = env.text("BACKEND_ALLOWED_HOSTS").split(",")

# A redirect would turn a POST without the trailing slash into a GET; a 404 shows the mistake.
APPEND_SLASH = False

ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
ASGI_APPLICATION = "config.asgi.application"


@dataclass(frozen=True)
class _Django:
    """The parts of Django and DRF that the lab has a faster variant of."""

    database: str
    negotiation: str
    middleware: tuple[str, ...]


# As in most projects: the naive implementations are measured with this.
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
    negotiation="config.http.content.FastNegotiation",
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
# Apps and routes that exist only if an experiment enables them.
if LAB.LAB_WORKBENCH is Switch.ON:
    # `channels` provides the command `runworker`, which reads ASGI_APPLICATION. The servers get
    # their application from config/server/start.py.
    INSTALLED_APPS += ["channels", "workbench"]
    ASGI_APPLICATION = "workbench.consumers.application"
if LAB.LAB_WEBSOCKETS is Switch.ON:
    INSTALLED_APPS += ["live"]
# No sessions, cookies or users: no middleware may make a response private.
MIDDLEWARE = [
    "observability.middleware.RequestMetrics",
    "ops.shedding.Shedding",
    "config.http.middleware.ContentSecurityPolicy",
    *_DJANGO.middleware,
]
# Only for the Swagger page.
TEMPLATES = [
    {"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True, "OPTIONS": {}}
]
STATIC_URL = "static/"


def _connection_handling() -> dict[str, Any]:
    """Return the options of psycopg's pool, or of Django's own connections; they exclude each
    other.
    """
    if LAB.pool_size is None:
        # Under ASGI each request has a separate thread, so no later request would use its
        # connection.
        age = 0 if env.is_asgi() else LAB.LAB_CONN_MAX_AGE
        return {"CONN_MAX_AGE": age, "OPTIONS": {}}
    options = pool.options(LAB.pool_size, LAB.LAB_DB_CONNECT_TIMEOUT)
    # config.postgres checks the pool's connections; psycopg's own check pauses between lost ones.
    return {"CONN_MAX_AGE": 0, "CONN_HEALTH_CHECKS": False, "OPTIONS": {"pool": options}}


def _postgres_address() -> dict[str, str]:
    """Return Postgres's address, or that of the proxy that delays.

    Servers get the proxy's address; management commands do not.
    """
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
        # Replace a persistent connection that Postgres has closed.
        "CONN_HEALTH_CHECKS": True,
        **_HANDLING,
        "OPTIONS": {
            **_HANDLING["OPTIONS"],
            "connect_timeout": LAB.LAB_DB_CONNECT_TIMEOUT,
            "application_name": "load-lab",
            # An impostor of Postgres that requests the password in plain text must not get it.
            # Other methods than SCRAM can be measured (docs/latency.md).
            "require_auth": "!password",
            # Executions on a connection before psycopg prepares a statement of
            # config.postgres.prepared. So a connection for a single request prepares nothing, which
            # would cost a round trip. This is psycopg's default; Django's is never.
            "prepare_threshold": None if LAB.is_stock else 5,
            "options": (
                f"-c statement_timeout={LAB.LAB_DB_STATEMENT_TIMEOUT}s"
                f" -c lock_timeout={LAB.LAB_DB_LOCK_TIMEOUT}s"
                # hotels/sql/suites.sql uses dates as Postgres formats them. Default: the role's.
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
            "REDIS_CLIENT_CLASS": "hotels.caching.circuit_breaker.GuardedRedis",
            # Written in C. It is named so that its absence is an error instead of a slow cache.
            "PARSER_CLASS": "redis.connection._HiredisParser",
            # An unavailable cache is a miss. The circuit breaker logs it.
            "IGNORE_EXCEPTIONS": True,
            # Seconds for one reply, and for one connection. With shorter ones a busy CPU looks like
            # a hanging Redis (docs/measured/caching.md). A pool created here does not retry.
            "SOCKET_TIMEOUT": 0.08,
            "SOCKET_CONNECT_TIMEOUT": 0.08,
            # Only the password is sent before the first command: RESP 2 needs no greeting.
            "CONNECTION_POOL_KWARGS": {
                "protocol": 2,
                "driver_info": None,
                # Above LAB_THREADS's maximum: an exhausted pool would look like an unavailable
                # Redis. Default: 100.
                "max_connections": 2048,
            },
        },
    }
}
# Database 1 of the caches' Redis. It contains only messages in transit: emptying the caches between
# two loads deletes them too, when no request waits for them. Subscriptions and waiting workers are
# not data.
_CHANNELS = {
    "address": f"{env.text('BACKEND_REDIS_URL').rpartition('/')[0]}/1",
    "password": env.secret("redis_password"),
}
CHANNEL_LAYERS = {
    # For the workbench: a message queue; each message goes to one worker.
    "default": {
        "BACKEND": "channels_redis.core.RedisChannelLayer",
        "CONFIG": {
            # Longer than the 5 s of one blocking read: the Redis client's default timeout is 5 s
            # too, and a worker without work would exit each time.
            "hosts": [{**_CHANNELS, "socket_timeout": 15}],
            # Messages that can wait on one channel before sending fails. The published load has 500
            # users, so at most 500 requests at once. Default: 100.
            "capacity": 2000,
            # Seconds. The sender has timed out long before. Default: 60.
            "expiry": 10,
        },
    },
    # For WebSockets: Redis Pub/Sub, with an unbounded queue in the process of the connections. The
    # layer above silently drops messages beyond a connection's capacity.
    "live": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [_CHANNELS]},
    },
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# A booking is under 1 KB; Nginx has the same limit.
DATA_UPLOAD_MAX_MEMORY_SIZE = 64 * 1024

REST_FRAMEWORK = {
    # One renderer, so that no response has `Vary: Accept`.
    "DEFAULT_RENDERER_CLASSES": ["config.http.content.CompactJSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["config.http.content.BoundedJSONParser"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": _DJANGO.negotiation,
    "DEFAULT_AUTHENTICATION_CLASSES": [],
    "DEFAULT_PERMISSION_CLASSES": [],
    "UNAUTHENTICATED_USER": None,
    "EXCEPTION_HANDLER": "config.http.errors.exception_handler",
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    # The schema view would copy any other `?version=` into a header; a newline in it is a 500.
    "ALLOWED_VERSIONS": ["1.0.0"],
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Hotel booking",
    "DESCRIPTION": "The reference application of the load lab.",
    "VERSION": "1.0.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    # Send no address of ours to an online validator. Default: sent, except for localhost.
    "SWAGGER_UI_SETTINGS": {"deepLinking": True, "validatorUrl": None},
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
}

USE_TZ = True
TIME_ZONE = "UTC"
USE_I18N = False

# TLS is terminated in front of the lab, and there is no browser session to protect.
SILENCED_SYSTEM_CHECKS = [
    "security.W001",  # _QUICK has a subclass of SecurityMiddleware
    "security.W002",  # and of XFrameOptionsMiddleware
    "security.W003",  # no forms, hence no CSRF middleware
    "security.W004",  # HSTS belongs to the server that terminates TLS
    "security.W008",  # so does the redirect to HTTPS
]

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": "WARNING"},
    # The metrics count 4xx and 503 responses. A log line for each would slow the target down, most
    # of all during load shedding.
    "filters": {
        "not_503": {
            "()": "django.utils.log.CallbackFilter",
            "callback": lambda record: getattr(record, "status_code", None) != 503,
        }
    },
    "loggers": {
        "django.request": {"level": "ERROR", "filters": ["not_503"]},
        # A malformed Host header is an error of its client. Default: a traceback for each.
        "django.security.DisallowedHost": {"level": "CRITICAL"},
    },
}
