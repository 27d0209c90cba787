"""Django sites without OpenAPI, whose pages need a session, and which have GETs that act.

SITE chooses the routes; each GET that acts is appended to the file ACTED. `manage.py login URL`
prints a new session.
"""

import functools
import os
import sys
import uuid
from pathlib import Path
from urllib.request import urlopen

from django.conf import settings
from django.core.management import execute_from_command_line
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse, HttpResponseRedirect, JsonResponse
from django.urls import path
from django.views import View
from django.views.decorators.http import last_modified

settings.configure(
    SECRET_KEY="only for tests", ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], INSTALLED_APPS=[]
)
ITEMS = (11, 12, 13)
# Of this process; the tests start one.
SESSIONS = set()


def login(request):
    session = uuid.uuid4().hex
    SESSIONS.add(session)
    return HttpResponse(session)


def is_known(request):
    return request.COOKIES.get("session") in SESSIONS


def page(request, content):
    return JsonResponse(content) if is_known(request) else HttpResponseRedirect("/login/?next=/")


def home(request):
    return JsonResponse({})


def items(request, **_):
    return page(request, {"results": [{"id": item, "pk": item, "run": item} for item in ITEMS]})


def item(request, pk):
    return page(request, {"id": pk})


def act(request, **_):
    with Path(os.environ["ACTED"]).open("a") as acted:
        acted.write(f"{request.path}\n")
    return JsonResponse({})


def farewell(request):
    SESSIONS.discard(request.COOKIES.get("session"))
    return HttpResponseRedirect("/")


def farewell_to_login(request):
    SESSIONS.discard(request.COOKIES.get("session"))
    return HttpResponseRedirect("/login/")


def forbidden(request):
    """Answer as an administration does to its users' visitors."""
    return HttpResponseRedirect("/login/?next=/staff/")


class ApproveOrderView(View):
    def get(self, request, **_):
        return act(request)


class Order(View):
    def get(self, request, **_):
        return items(request)

    def delete(self, request, **_):
        return act(request)


def sync_now(request):
    return act(request)


def clear_carts(request, **_):
    return act(request)


class Move(View):
    def post(self, request, **_):
        return act(request)


@last_modified(lambda request, **_: None)
def purge_orders(request, **_):
    return act(request)


def permission_required(_, test_function=is_known):
    """Decorate a view, and hide it: without functools.wraps()."""

    def decorator(function):
        def wrapper(request, *args, **kwargs):
            return function(request, *args, **kwargs) if test_function(request) else None

        return wrapper

    return decorator


SITES = {
    # Separators of every kind.
    "separators": {
        "log-out/": farewell,
        "sign_off/": farewell,
        "items/<int:pk>/approve/": act,
        "send-newsletter/": act,
        "rebuild/": act,
        "clear-cache/": act,
        "impersonate/<int:pk>/": act,
        "items/<int:pk>/export/": act,
        "i18n/setlang/": act,
        "cacheClear/": act,
        "cron/run.php": act,
    },
    # Verbs that end a name or begin it.
    "verbs": {
        "mark-as-paid/<int:pk>/": act,
        "items/<int:pk>/un-publish/": act,
        "items/<int:pk>/start": act,
        "add_to_cart/<int:pk>/": act,
        "resendInvite/<int:pk>": act,
        "orders/bulk-import/": act,
        "jobs/<int:pk>/re-run/": act,
        "opt.out/": act,
        "loginas/<int:pk>/": act,
    },
    # Only the view's own name says so.
    "views": {
        "orders/<int:pk>/ok/": ApproveOrderView.as_view(),
        "nightly/": sync_now,
    },
    # Its own name is hidden.
    "decorated": {
        "carts/<int:pk>/gone/": permission_required("x")(ApproveOrderView.as_view()),
        "carts/<int:pk>/two/": permission_required("x")(permission_required("y")(clear_carts)),
        "carts/<int:pk>/part/": functools.partial(clear_carts, by="hand"),
        "carts/<int:pk>/old/": purge_orders,
        "carts/<int:pk>/all/": permission_required("x")(purge_orders),
        "carts/<int:pk>/up/": permission_required("x")(Move.as_view()),
    },
    # Written together, or at the end of what is set.
    "run together": {
        "items/<int:pk>/deletecarts/": act,
        "items/<int:pk>/resetdriftthrottle/": act,
        "items/<int:pk>/roll/": act,
        "settings/leaveteams/": act,
        "customers/<int:pk>/anonymize/": act,
        "locale/set/": act,
    },
    # Nothing says so.
    "farewell": {"bye/": farewell},
    "farewell to the login": {"bye/": farewell_to_login, "staff/": forbidden},
    "nouns": {
        "approvals/": items,
        "builds/": items,
        "senders/": items,
        "export-templates/": items,
        "build-status/": items,
        "start/": items,
        "set/": items,
        "products/": items,
        "catalogue/": items,
        "cancelled/": items,
        "deleted/": items,
        "leave-requests/": items,
        "unlocked/": items,
        "publishers/": items,
        "runs/<int:run>/": items,
    },
}
urlpatterns = [
    path("", home),
    path("login/", login, name="login"),
    *(path(route, view) for route, view in SITES[os.environ["SITE"]].items()),
    path("items/", items),
    path("items/<int:pk>/", item),
    # The name is that of another method.
    path("orders/<int:pk>/", Order.as_view(), name="order-destroy"),
]
application = get_wsgi_application()

if __name__ == "__main__":
    if sys.argv[1] == "login":
        with urlopen(f"{sys.argv[2]}/login/") as answer:
            print(answer.read().decode())
    else:
        execute_from_command_line(sys.argv)
