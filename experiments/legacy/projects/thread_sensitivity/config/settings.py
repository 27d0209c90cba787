"""Minimal settings. libpq's environment variables (PGHOST etc.) set the database's address."""
import os
from pathlib import Path

from django.core.management.utils import get_random_secret_key

# Nothing is signed.
SECRET_KEY = get_random_secret_key()
DEBUG = False
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "config.urls"
INSTALLED_APPS = ["workbench"]
MIDDLEWARE = []
TIME_ZONE = "UTC"
USE_TZ = True
# As in the source, whose text names no CONN_MAX_AGE: a connection per request.
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": os.environ["PGDATABASE"],
        "PASSWORD": Path(os.environ["LEGACY_PASSWORD_FILE"]).read_text().strip(),
    }
}
# Neither logins nor HTML: the source's app is an API.
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [],
    "DEFAULT_PERMISSION_CLASSES": [],
    "UNAUTHENTICATED_USER": None,
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
}
