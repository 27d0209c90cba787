"""A django-ninja project: OpenAPI 3.1, a login that gives a JSON web token of five minutes."""

import os
import sys
import time

import httpx
import jwt
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.urls import path

settings.configure(
    SECRET_KEY="only for tests, but 32 bytes long",
    ROOT_URLCONF=__name__,
    ALLOWED_HOSTS=["*"],
    INSTALLED_APPS=["ninja"],
)

from ninja import NinjaAPI, Schema  # noqa: E402 - it reads the settings
from ninja.errors import HttpError  # noqa: E402
from ninja.security import HttpBearer  # noqa: E402


class Login(Schema):
    name: str
    password: str


class NewArticle(Schema):
    slug: str
    title: str
    body: str = ""


class Bearer(HttpBearer):
    def authenticate(self, request, token):
        try:
            return jwt.decode(token, settings.SECRET_KEY, algorithms=["HS256"])["name"]
        except jwt.InvalidTokenError:
            return None


api = NinjaAPI(title="Articles")
ARTICLES = {
    slug: {"slug": slug, "title": slug.title(), "body": ""} for slug in ("first", "second", "third")
}


@api.get("/health")
def health(request):
    return {"state": "ready"}


@api.get("/report")
def report(request):
    """Take some milliseconds of CPU time, so that the server is the limit of any load."""
    return {"sum": sum(i * i for i in range(60_000))}


@api.post("/login")
def login(request, data: Login):
    if data.password != "secret":
        raise HttpError(401, "wrong password")
    expires = time.time() + int(os.environ.get("TOKEN_SECONDS", "300"))
    claims = {"name": data.name, "exp": expires}
    return {"token": jwt.encode(claims, settings.SECRET_KEY, algorithm="HS256")}


@api.get("/me", auth=Bearer())
def me(request):
    return {"name": request.auth}


@api.get("/articles", auth=Bearer())
def articles(request, limit: int = 20):
    return {"articles": list(ARTICLES.values())[:limit]}


def _find(slug):
    if slug not in ARTICLES:
        raise HttpError(404, "no such article")
    return ARTICLES[slug]


@api.post("/articles", auth=Bearer(), response={201: NewArticle})
def create(request, data: NewArticle):
    if data.slug in ARTICLES:
        raise HttpError(400, "slug: there is such an article")
    ARTICLES[data.slug] = data.dict()
    return 201, ARTICLES[data.slug]


@api.get("/articles/{slug}", auth=Bearer())
def article(request, slug: str):
    return _find(slug)


@api.put("/articles/{slug}", auth=Bearer())
def change(request, slug: str, data: NewArticle):
    _find(slug)["title"] = data.title
    return _find(slug)


@api.delete("/articles/{slug}", auth=Bearer(), response={204: None})
def remove(request, slug: str):
    del ARTICLES[_find(slug)["slug"]]
    return 204, None


@api.get("/articles/{slug}/comments", auth=Bearer())
def comments(request, slug: str):
    _find(slug)
    return []


urlpatterns = [path("api/", api.urls)]
application = get_wsgi_application()

if __name__ == "__main__":
    # Log in, and print the token.
    answer = httpx.post(f"{sys.argv[1]}/api/login", json={"name": "ada", "password": "secret"})
    print(answer.raise_for_status().json()["token"])
