"""URL routes. Nginx returns 404 for those of ops.urls."""

from django.conf import settings
from django.contrib.staticfiles.views import serve
from django.urls import include, path
from drf_spectacular.views import SpectacularAPIView
from lab_settings.kinds import Switch

from config.http.docs import DocsView

urlpatterns = [
    path("api/", include("hotels.urls")),
    path("api/schema/", SpectacularAPIView.as_view(), name="schema"),
    path("api/docs/", DocsView.as_view(url_name="schema"), name="docs"),
    # Swagger's static files, from its package. They are for people, not under load.
    path("static/<path:path>", serve, {"insecure": True}, name="static"),
    path("", include("ops.urls")),
]
if settings.LAB.LAB_WORKBENCH is Switch.ON:
    urlpatterns.append(path("", include("workbench.urls")))

handler400 = "config.http.errors.bad_request"
handler404 = "config.http.errors.not_found"
handler500 = "config.http.errors.server_error"
