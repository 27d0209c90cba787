"""The application of events.py, with its settings."""

from django.conf import settings
from django.core.wsgi import get_wsgi_application

settings.configure(
    SECRET_KEY="only for tests",
    ROOT_URLCONF="events",
    ALLOWED_HOSTS=["*"],
    INSTALLED_APPS=["rest_framework", "drf_spectacular"],
    USE_TZ=True,
    REST_FRAMEWORK={
        "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
        "DEFAULT_AUTHENTICATION_CLASSES": [],
        "UNAUTHENTICATED_USER": None,
        "DATETIME_FORMAT": "%d.%m.%Y %H:%M",
        "DATE_FORMAT": "%d.%m.%Y",
        "TIME_FORMAT": "%H o'clock",
    },
)
application = get_wsgi_application()
