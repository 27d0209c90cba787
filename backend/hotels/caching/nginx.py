"""What Nginx is told of a page (LAB_NGINX_CACHE)."""

from django.conf import settings
from django.http import HttpResponse
from lab_settings.durations import seconds as seconds_of

# While one request fetches the new page, the others get the old one, for this long at most. Longer
# would let the first reader after a quiet time get a page as old as that.
STALE_WHILE_REVALIDATE_SECONDS = 1
# How long Nginx may hand out the old page when the backend can't be reached.
STALE_IF_ERROR_SECONDS = 60


def say_nothing(_response: HttpResponse) -> None:
    """off and basic: Nginx goes by what the other layers say, as in the article."""


def say_lifetime(response: HttpResponse) -> None:
    """protected: the lifetime is the setting's, whatever another layer said."""
    seconds = round(seconds_of(settings.LAB.LAB_NGINX_CACHE_TTL))
    response["X-Accel-Expires"] = str(seconds)
    response["Cache-Control"] = (
        f"max-age={seconds}, stale-while-revalidate={STALE_WHILE_REVALIDATE_SECONDS}, "
        f"stale-if-error={STALE_IF_ERROR_SECONDS}"
    )
    for name in ("Expires", "Age"):
        del response[name]
