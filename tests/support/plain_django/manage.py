"""A Django project with every kind of route. It runs on Django 2.2 or later."""

import os
import sys

from django.conf import settings
from django.core.management import execute_from_command_line

settings.configure(
    SECRET_KEY=os.environ.get("SECRET_KEY", "only for tests"),
    ROOT_URLCONF=os.environ.get("ROOT_URLCONF", "urls"),
    INSTALLED_APPS=[
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "rest_framework",
    ],
    LANGUAGES=[("de", "German"), ("en", "English")],
    LANGUAGE_CODE="en",
    USE_I18N=True,
)
print("a project may print lines before the routes, with <<<routes and routes>>>")
execute_from_command_line(sys.argv)
