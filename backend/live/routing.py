"""The addresses of WebSockets."""

from django.urls import path, re_path

from live.consumers import HotelWatch, no_such_address

websocket_urlpatterns = [
    path("ws/hotel/<uuid:hotel>/", HotelWatch.as_asgi()),
    # An address without a route would be an error of ours, with a traceback.
    re_path("", no_such_address),  # type: ignore[arg-type]
]
