"""One route of each kind."""

from django.conf.urls.i18n import i18n_patterns
from django.urls import include, path, re_path
from django.views import View
from rest_framework.decorators import api_view
from rest_framework.routers import SimpleRouter
from rest_framework.viewsets import ViewSet


def page(request, *args, **kwargs):
    raise NotImplementedError


class Form(View):
    get = post = page


class Hotels(ViewSet):
    list = create = retrieve = destroy = page


@api_view(["PUT"])
def answer(request):
    raise NotImplementedError


class OptionalSlashRouter(SimpleRouter):
    def __init__(self):
        super().__init__()
        self.trailing_slash = "/?"


router = OptionalSlashRouter()
router.register("hotel", Hotels, basename="hotel")

year = [
    re_path(r"^(\d{4})/([a-z-]+)/$", page, name="archive"),
    re_path(r"^page(?:/(?P<number>[0-9]{1,3}))?/$", page, name="page"),
]
urlpatterns = [
    path("", page, name="home"),
    path("ping/<uuid:code>/", page, name="hc-ping"),
    path("form/<slug:slug>", Form.as_view()),
    path("read-only/", Form.as_view(http_method_names=["get"])),
    path("answer/", answer),
    path("files/<path:file>", page),
    path("api/", include((router.urls, "api"), namespace="v1")),
    re_path(r"^by-(author|tag)/", include(year)),
    re_path(r"^(?:about|imprint)\.html$", page, name="static"),
    re_path(r"(?i)^ignored-case/$", page),
    *i18n_patterns(path("news/<int:pk>/", page), prefix_default_language=False),
]
