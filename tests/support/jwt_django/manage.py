"""A plain Django project without OpenAPI, whose notes need a JSON web token of five minutes."""

import base64
import json
import os
import sys
import time

from django.conf import settings
from django.core.management import execute_from_command_line
from django.core.wsgi import get_wsgi_application
from django.http import JsonResponse
from django.urls import path
from django.views.decorators.http import require_GET

settings.configure(
    SECRET_KEY="only for tests", ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], INSTALLED_APPS=[]
)
SIGNATURE = "canary-signature"
NOTES = {"first-note": 1, "second-note": 2}


def _part(content):
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")


def token(seconds):
    return f"{_part({'alg': 'none'})}.{_part({'exp': time.time() + seconds})}.{SIGNATURE}"


def answer(request, content):
    is_allowed = request.headers.get("Authorization", "").endswith(SIGNATURE)
    return JsonResponse(content if is_allowed else {}, status=200 if is_allowed else 401)


@require_GET
def home(request):
    return JsonResponse({})


@require_GET
def notes(request):
    return answer(request, {"results": [{"slug": slug} for slug in NOTES]})


@require_GET
def note(request, slug):
    return answer(request, {"number": NOTES[slug]})


@require_GET
def ping(request, slug):
    """Write, although it is a GET."""
    raise NotImplementedError


urlpatterns = [
    path("", home),
    path("notes/", notes),
    path("notes/<slug:slug>/", note),
    path("notes/<slug:slug>/ping/", ping),
]
application = get_wsgi_application()

if __name__ == "__main__":
    if sys.argv[1] == "token":
        print(token(int(os.environ.get("TOKEN_SECONDS", "300"))))
    else:
        execute_from_command_line(sys.argv)
