"""Routes of the workbench, sync and async, through both of Django's test clients."""

import pytest
from asgiref.sync import async_to_sync
from django.db import connection
from django.test import AsyncClient, Client
from lab_settings.kinds import Views
from prometheus_client import REGISTRY
from workbench.data import LOCK_ROWS
from workbench.models import LockRow, Post
from workbench.urls import routes

PREFIXES = {Views.SYNC: "/workbench", Views.ASYNC: "/async/workbench"}
NAMES = [route.name.removeprefix("workbench_") for route in routes("", Views.SYNC)]
GETS = [name for name in NAMES if name not in ("io_create", "layer_hello")]
SLEEPS = ("sleep", "read_sleep", "row_lock", "random_row_lock", "pg_sleep")
pytestmark = pytest.mark.django_db


class Workbench:
    """One variant of the routes, called by one kind of client."""

    def __init__(self, variant, client) -> None:
        self.variant = variant
        self._client = client()

    def __call__(self, route, method="get", **request):
        call = getattr(self._client, method)
        path = f"{PREFIXES[self.variant]}/{route.replace('_', '-')}/"
        if isinstance(self._client, AsyncClient):
            return async_to_sync(call)(path, **request)
        return call(path, **request)


@pytest.fixture(params=[(v, c) for v in Views for c in (Client, AsyncClient)], ids=str)
def workbench(request):
    """Return sync and async views, each called as by a WSGI and by an ASGI server."""
    return Workbench(*request.param)


@pytest.fixture
def rows(db):
    LockRow.objects.bulk_create(LockRow(pk=n, name=f"row {n}") for n in range(1, LOCK_ROWS + 1))


@pytest.mark.parametrize("route", GETS)
def test_each_route_returns_200(workbench, rows, route):
    query = {"cpu": {"n": 5}} | {name: {"seconds": 0.001} for name in SLEEPS}
    answer = workbench(route, query_params=query.get(route))
    assert answer.status_code == 200, answer.content


def test_cpu_sums_squares(workbench):
    assert workbench("cpu", query_params={"n": 4}).json() == {"n": 4, "sum": 0 + 1 + 4 + 9}


def test_read_returns_first_posts_and_total_count(workbench):
    Post.objects.bulk_create(Post(title=f"t{n}", content="c") for n in range(30))
    document = workbench("io_read").json()
    assert document["count"] == 30
    assert [post["title"] for post in document["posts"]] == [f"t{n}" for n in range(25)]
    assert set(document["posts"][0]) == {"id", "title", "content", "created_at"}


def test_create_writes_one_post(workbench):
    answer = workbench("io_create", "post", data={"title": "Über", "content": "x"})
    assert answer.status_code == 201
    assert Post.objects.get(pk=answer.json()["id"]).title == "Über"


@pytest.mark.parametrize(
    ("form", "fields"),
    [
        ({}, {"title", "content"}),
        ({"title": "t"}, {"content"}),
        ({"title": " ", "content": "c"}, {"title"}),
        ({"title": "t" * 201, "content": "c"}, {"title"}),
        ({"title": "t", "content": "c" * 10_001}, {"content"}),
        ({"title": "a\0b", "content": "c"}, {"title"}),
    ],
)
def test_invalid_form_names_its_fields_and_writes_nothing(workbench, form, fields):
    answer = workbench("io_create", "post", data=form)
    assert answer.status_code == 400
    assert set(answer.json()["error"]["fields"]) == fields
    assert Post.objects.count() == 0


def test_body_other_than_a_form_is_400(workbench):
    answer = workbench("io_create", "post", data={"title": "t"}, content_type="application/json")
    assert set(answer.json()["error"]["fields"]) == {"title", "content"}


def test_too_large_body_is_413(workbench):
    body = "title=t&content=" + "c" * 70_000
    answer = workbench(
        "io_create", "post", data=body, content_type="application/x-www-form-urlencoded"
    )
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")


@pytest.mark.parametrize("n", ["0", "-1", str(10**8 + 1), "9" * 5000, "ten", "1.5", "1e3"])
def test_invalid_cpu_size_is_rejected_before_summing(workbench, monkeypatch, n):
    monkeypatch.delattr("workbench.work.sum_of_squares")
    answer = workbench("cpu", query_params={"n": n})
    assert answer.status_code == 400
    (message,) = answer.json()["error"]["fields"]["n"]
    assert "1" in message


@pytest.mark.parametrize("route", SLEEPS)
@pytest.mark.parametrize("seconds", ["5.1", "-1", "nan", "inf", "long"])
def test_invalid_sleep_is_rejected(workbench, route, seconds):
    answer = workbench(route, query_params={"seconds": seconds})
    assert answer.status_code == 400
    (message,) = answer.json()["error"]["fields"]["seconds"]
    assert "5" in message or "0" in message


@pytest.mark.parametrize("route", NAMES)
def test_unsupported_method_is_405_in_the_error_format(workbench, route):
    answer = workbench(route, "delete")
    assert answer.status_code == 405
    assert answer.json()["error"]["code"] == "method_not_allowed"
    assert answer.headers["Allow"] == ("POST" if route == "io_create" else "GET, HEAD")


@pytest.mark.parametrize("route", ["row_lock", "random_row_lock"])
def test_missing_lock_rows_are_503_and_name_load_db(workbench, route):
    answer = workbench(route)
    assert answer.status_code == 503
    assert "load_db --workbench" in answer.json()["error"]["message"]


def test_cancelled_statement_is_503(workbench):
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = 1")
    answer = workbench("pg_sleep", query_params={"seconds": 5})
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "unavailable")
    assert answer.headers["Retry-After"] == "1"


def test_both_variants_count_requests_by_route(workbench):
    labels = {"route": "workbench_hello", "method": "GET", "status": "200"}
    before = REGISTRY.get_sample_value("lab_http_requests_total", labels) or 0
    workbench("hello")
    assert REGISTRY.get_sample_value("lab_http_requests_total", labels) == before + 1


def test_schema_excludes_the_workbench(api):
    assert "workbench" not in api.get("/api/schema/?format=json").content.decode()


@pytest.mark.parametrize("variant", list(Views))
def test_lab_views_selects_variant_with_same_route_names(variant):
    from inspect import iscoroutinefunction

    patterns = routes("", variant)
    assert [route.name for route in patterns] == [f"workbench_{name}" for name in NAMES]
    assert {iscoroutinefunction(route.callback) for route in patterns} == {variant is Views.ASYNC}
