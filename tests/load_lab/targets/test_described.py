"""What a document describes is in the mix or left out, and requests have what it requires."""

import io
import json
import re
from urllib.parse import urlsplit

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from load_lab.cli.targets_wording import mix
from load_lab.errors import LabError, UsageError
from load_lab.targets.making import _require_known
from load_lab.targets.mix import Arrival, Mix, Operation, Request
from load_lab.targets.sources.described import divided
from load_lab.targets.sources.explorer import explore, templates_of
from load_lab.targets.sources.known_values import KnownValues
from load_lab.targets.sources.openapi import read_document
from load_lab.targets.sources.paths import Template
from load_lab.targets.sources.recorded import keep_answered
from load_lab.targets.sources.routes import route_operation
from load_lab.targets.sources.safety import WRITES, Safety
from load_lab.targets.sources.session import Session
from load_lab.targets.sources.writes import explore_writes
from tests.support.http_server import QuietHandler, serve_http

GET = {"get": {}}


def described(paths, source="document", files=None, base_path="", **document):
    text = json.dumps({"openapi": "3.1.0", "paths": {"/ok/": GET, **paths}, **document})

    def load(address):
        if address not in files:
            raise LabError(address)
        return files[address]

    return read_document(text, source, base_path=base_path, load=load if files else None)


@pytest.fixture
def serve():
    """Return a function that serves documents by path, and a function that explores them."""

    def explored(answers, paths=None, given=None, operations=None, allowed=(), **document):
        seen = []

        class Handler(QuietHandler):
            def do_GET(self):
                seen.append((self.path, dict(self.headers)))
                answer = answers.get(self.path, answers.get(urlsplit(self.path).path))
                if callable(answer):
                    answer(self)
                    return
                body = json.dumps(answer).encode()
                status = answer if isinstance(answer, int) else 404 if answer is None else 200
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        operations = [
            each.with_values(given or {})
            for each in operations or described(paths, **document).operations
        ]
        answers.setdefault("/ok/", {})
        with serve_http(Handler) as url, httpx.Client(base_url=url) as client:
            found, left_out = divided(explore(operations, client, safety=Safety(allowed)))
        mix = {each.name.removeprefix("GET "): [r.path for r in each.requests] for each in found}
        reasons = {each.name.removeprefix("GET "): each.reason for each in left_out}
        return mix, reasons, seen

    return explored


def parameter(name, place, required=True, **members):
    return {"name": name, "in": place, "required": required, **members}


def get(*parameters):
    return {"get": {"parameters": list(parameters)}}


# What is described.

METHODS = st.sampled_from(["get", "head", "post", "put", "patch", "delete", "options", "x-a"])
ITEMS = st.dictionaries(METHODS, st.just({}), max_size=4) | st.just({"$ref": "other.yaml"})
PATHS = st.sampled_from(
    ["/a/", "b/", "{href}", "{href}/c/", "http://h/d/", "http://h", "/\0", "x-e"]
)


@given(st.dictionaries(PATHS, ITEMS, max_size=6))
def test_each_described_operation_is_in_or_left_out(paths):
    found = described(paths)
    operations = sum(
        len({*item} & {"get", "head", "post", "put", "patch", "delete"}) or "$ref" in item
        for path, item in paths.items()
        if not path.startswith("x-")
    )
    assert len(found.operations) + len(found.left_out) == operations + 1
    assert all(each.reason for each in found.left_out)


@pytest.mark.parametrize(
    ("path", "template"),
    [
        ("http://api.example.org/v1/users/{id}/", "/v1/users/{id}/"),
        ("https://[::1]:8000/users/", "/users/"),
        ("{user_url}", "{user_url}"),
        ("{user_url}groups/{id}/", "{user_url}groups/{id}/"),
        ("/shop/items/", "/items/"),
        ("/shop", "/"),
        ("/shopping/", "/shopping/"),
    ],
)
def test_templates_below_the_address_of_the_target(path, template):
    found = described({path: GET}, base_path="/shop")
    assert found.operations[-1].template == template


@pytest.mark.parametrize("servers", ["/shop", "/shop/", "https://example.org/shop"])
def test_path_of_server_and_target_appears_once(servers):
    document = {"servers": [{"url": servers}]}
    assert described({}, base_path="/shop", **document).operations[0].template == "/ok/"
    assert described({}, base_path="/other", **document).operations[0].template == "/shop/ok/"


def test_other_files_are_read_where_they_can_be_had():
    files = {
        "https://h/api/paths/teams.yaml": "get: {operationId: teams, parameters: [{$ref: "
        "'../parts.json#/limit'}, {$ref: '#/x'}]}\nx: {name: y, in: query, required: true}\n",
        "https://h/api/parts.json": json.dumps({"limit": parameter("limit", "query")}),
    }
    paths = {
        "/teams/": {"$ref": "paths/teams.yaml"},
        "/lost/": {"$ref": "paths/lost.yaml#/get"},
        "/elsewhere/": {"$ref": "https://other/x.yaml"},
    }
    found = described(paths, "https://h/api/openapi.json", files)
    teams = found.operations[-1]
    assert (teams.name, [each.name for each in teams.query]) == ("GET /teams/", ["limit", "y"])
    assert [(each.name, each.reason) for each in found.left_out] == [
        ("/lost/", "refers to paths/lost.yaml#/get, which can't be read"),
        ("/elsewhere/", "refers to https://other/x.yaml, which can't be read"),
    ]


# Values.


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "integer"}, "10"),
        ({"type": "integer", "minimum": 5}, "5"),
        ({"type": ["integer", "null"], "default": 25}, "25"),
        ({"type": "string", "enum": ["b", "a"]}, "b"),
        ({"type": "boolean"}, "true"),
        ({"type": "string", "format": "date"}, "2030-01-01"),
    ],
)
def test_required_query_parameter_has_a_value(schema, value, serve):
    items = {"/items/1/": {"id": 1}, f"/items/?limit={value}": [{"id": 1}]}
    paths = {"/items/": get(parameter("limit", "query", schema=schema)), "/items/{id}/": GET}
    mix, reasons, _ = serve(items, paths)
    assert mix["/items/"] == [f"/items/?limit={value}"]
    assert mix["/items/{id}/"] == ["/items/1/"]
    assert not reasons


@pytest.mark.parametrize(
    ("name", "value"), [("page", "1"), ("pageSize", "10"), ("page_size", "10"), ("n", "1")]
)
def test_small_integers_by_name(name, value, serve):
    paths = {"/x/": get(parameter(name, "query", schema={"type": "integer"}))}
    assert serve({"/x/": {}}, paths)[0]["/x/"] == [f"/x/?{name}={value}"]


def test_examples_of_content_are_values(serve):
    content = {"application/json": {"schema": {"type": "string", "example": "newest"}}}
    other = {"text/plain": {"example": "first"}}
    paths = {
        "/a/": get(parameter("anchor", "query", content=content)),
        "/b/": get(parameter("anchor", "query", content=other)),
    }
    mix, _, _ = serve({"/a/": {}, "/b/": {}}, paths)
    assert (mix["/a/"], mix["/b/"]) == (["/a/?anchor=newest"], ["/b/?anchor=first"])


def test_required_headers_and_cookies_are_sent_but_none_of_who_asks(serve):
    enum = {"schema": {"enum": ["a", "b"]}}
    names = ("Accept-Crs", "Host", "Authorization", "X-HTTP-Method-Override", "X-Api-Key")
    headers = [parameter(name, "header", **enum) for name in names]
    cookies = [parameter(name, "cookie", **enum) for name in ("tenant", "sessionid")]
    optional = parameter("Prefer", "header", required=False, **enum)
    mix, _, seen = serve({"/x/": {}}, {"/x/": get(*headers, *cookies, optional)})
    assert mix["/x/"] == ["/x/"]
    [sent] = [headers for path, headers in seen if path == "/x/"]
    assert (sent["accept-crs"], sent["cookie"]) == ("a", "tenant=a")
    assert not {"Authorization", "authorization", "x-api-key", "prefer"} & set(sent)
    assert sent["Host"].startswith("127.0.0.1:")


def test_refusal_names_what_was_required(serve):
    paths = {"/x/": get(parameter("Accept-Crs", "header", schema={"enum": ["no"]}))}
    _, reasons, _ = serve({}, paths)
    assert reasons["/x/"] == "/x/ answered 404; it requires Accept-Crs"


@pytest.mark.parametrize("value", ["NO", "on", "12:30", "010115", "1.10", "2026-01-31", "1e3"])
def test_scalars_of_yaml_keep_their_text(value):
    text = f"""
openapi: 3.0.3
paths:
  /x/:
    get: {{parameters: [{{name: p, in: query, required: True, example: {value}}}]}}
    post:
      requestBody:
        content:
          application/json:
            example: {{text: {value}, n: {value}, any: {value}}}
            schema: {{type: object, properties: {{text: {{type: string}}, n: {{type: number}}}}}}
"""
    read, write = read_document(text, "document").operations
    assert read.query[0].values == (value,)
    [example] = write.body.examples
    numbers = {"010115": 10115, "1.10": 1.1, "1e3": 1000}
    assert example == {"text": value, "n": numbers.get(value, value), "any": value}


def test_numbers_of_yaml_are_numbers_where_the_schema_wants_no_text():
    text = """
openapi: 3.0.3
paths:
  /x/:
    get: {}
    post:
      requestBody:
        content:
          application/json:
            example: {n: 5, price: 1.5, on: true, none: null, code: 7}
            schema: {properties: {code: {type: string}}}
"""
    [example] = read_document(text, "document").operations[1].body.examples
    assert example == {"n": 5, "price": 1.5, "on": True, "none": None, "code": "7"}


@pytest.mark.parametrize(
    ("answers", "path"),
    [
        # The same name under another prefix.
        (
            {"/orgs/": [{"slug": "acme"}], "/orgs/acme/": {}, "/stats/acme/x/": {}},
            "/stats/{org}/x/",
        ),
        # Names with dots, and fields of objects.
        ({"/jobs/": [{"run": {"jobId": "j-1"}}], "/jobs/j-1/": {}}, "/jobs/{run.job_id}/"),
        ({"/jobs/": [{"jobId": "j-1"}], "/jobs/j-1/": {}}, "/jobs/{run.job_id}/"),
        ({"/ok/": {"last": {"batchKey": "b7"}}, "/x/b7/": {}}, "/x/{a.batch_key}/"),
        # The suffix of a format.
        ({"/orgs/": [{"id": 3}], "/orgs/3/": {}, "/orgs/3.json": {}}, "/orgs/{org}{format}"),
    ],
)
def test_values_of_names(answers, path, serve):
    paths = {"/orgs/": GET, "/orgs/{org}/": GET, "/jobs/": GET, path: GET}
    expected = list(answers)[-1]
    mix, _, _ = serve(answers, paths)
    assert mix[path] == [expected]


def test_parameter_that_is_an_address(serve):
    answers = {
        "/api/remotes/": {"results": [{"pulp_href": "/api/remotes/7/", "name": "r"}]},
        "/api/file-repos/": [{"self_href": "/api/file-repos/8/", "remote_href": "/api/remotes/7/"}],
        "/api/remotes/7/": {"id": 7},
        "/api/remotes/7/versions/": [],
        "/api/file-repos/8/": {},
    }
    paths = {
        "/api/remotes/": GET,
        "/api/file-repos/": GET,
        "{remote_href}": GET,
        "{remote_href}versions/": GET,
        "{file_repo_href}": GET,
        "{volume_href}": GET,
    }
    mix, reasons, _ = serve(answers, paths)
    assert mix["{remote_href}"] == ["/api/remotes/7/"]
    assert mix["{remote_href}versions/"] == ["/api/remotes/7/versions/"]
    assert mix["{file_repo_href}"] == ["/api/file-repos/8/"]
    assert reasons["{volume_href}"] == "no value found for {volume_href}"


def test_values_with_a_slash_and_routes_of_one_template(serve):
    answers = {
        "/": [{"name": "a/b.txt", "pk": 7}, {"name": "c.txt", "pk": 8}],
        "/files/a%2Fb.txt": {},
        "/files/c.txt": {},
        "/pages/7/": {},
        "/pages/about/": {},
        "/report.csv": {},
    }
    routes = [
        ("/", {}),
        ("/files/{name}", {"name": r"[\w/.-]+"}),
        ("/pages/{pk}/", {"pk": "[0-9]+"}),
        ("/pages/{pk}/", {"pk": "about|imprint"}),
        ("/report.{format}", {"format": "pdf|csv"}),
    ]
    operations = [route_operation(Template("GET", *route)) for route in routes]
    mix, reasons, seen = serve(answers, operations=operations, allowed=["/report.{format}"])
    assert set(mix["/files/{name}"]) == {"/files/c.txt", "/files/a%2Fb.txt"}
    assert mix["/report.{format}"] == ["/report.csv"]
    assert {path for path, _ in seen} >= {"/pages/7/", "/pages/about/"}
    assert reasons == {}


def test_routes_get_only_what_their_regular_expressions_match(serve):
    answers = {
        "/": [{"code": "summer", "href": "/openair/ical"}, {"code": "QWERT", "day": "2027-03-26"}],
        "/openair/ical": {},
        "/days/2027-03-26": {},
        "/orders/QWERT": {},
    }
    routes = {
        "/": {},
        "/{shop}/ical": {"shop": "[^/]+"},
        "/orders/{code}": {"code": "[A-Z]{5}"},
        "/days/{day}": {"day": r"\d{4}-\d\d-\d\d"},
        "/uuids/{id}": {"id": "[0-9a-f]{8}-.*"},
        "/{shop}/{frame}": {"shop": "[^/]+", "frame": "[_]{0}"},
        "/orders.{format}": {"format": "[a-z0-9]+"},
    }
    operations = [route_operation(Template("GET", *route)) for route in routes.items()]
    mix, reasons, seen = serve(answers, operations=operations)
    assert mix == {
        "/": ["/"],
        "/{shop}/ical": ["/openair/ical"],
        "/orders/{code}": ["/orders/QWERT"],
        "/days/{day}": ["/days/2027-03-26"],
    }
    assert reasons == {
        "/{shop}/{frame}": "no value found for {frame}",
        "/uuids/{id}": "no value found for {id}",
        "/orders.{format}": "the same as another, with a suffix for the format: name it to have it "
        "in the mix",
    }
    shapes = ("/", "/[^/]+/ical", "/orders/[A-Z]{5}", r"/days/[0-9]{4}-\d\d-\d\d")
    assert not [path for path, _ in seen if not re.fullmatch("|".join(shapes), path)]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        # An answer that tells more than that a guess does not exist.
        ({"/events/summer/place": 405}, "/events/summer/place answered 405"),
        ({"/events/summer/place": 500}, "/events/summer/place answered 500"),
        ({"/events/summer/place": 403}, "/events/summer/place answered 403"),
        # Of equal ones, that of the most certain value.
        ({}, "/events/summer/place answered 404"),
    ],
)
def test_reason_is_the_most_telling_answer(answer, reason, serve):
    answers = {
        "/events/": [{"href": "/events/summer/"}],
        "/search/": {"results": [{"id": 5, "event": "Summer, 5 May"}]},
        "/events/summer/": {"event": "winter"},
        **answer,
    }
    paths = {"/events/": GET, "/search/": GET, "/events/{event}/": GET}
    paths |= {"/events/{event}/place": GET}
    mix, reasons, seen = serve(answers, paths)
    assert mix["/events/{event}/"] == ["/events/summer/"]
    assert reasons["/events/{event}/place"] == reason
    # A text for people is no value while there are others.
    assert not [path for path, _ in seen if "Summer" in path]


@pytest.mark.parametrize(("status", "seconds"), [(409, "1"), (503, "0"), (409, None), (503, "60")])
def test_what_is_ready_later_is_asked_for_again(status, seconds, serve):
    sent = []

    def answer(handler):
        sent.append(handler.path)
        is_ready = len(sent) > 1
        handler.send_response(200 if is_ready else status)
        if seconds is not None:
            handler.send_header("Retry-After", seconds)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    mix, reasons, _ = serve({"/file/": answer}, {"/file/": GET})
    is_found = seconds in ("0", "1")
    assert mix.get("/file/") == (["/file/"] if is_found else None)
    assert reasons == ({} if is_found else {"/file/": f"/file/ answered {status}"})


def test_write_without_an_object_beside_a_post_to_the_root():
    class Handler(QuietHandler):
        def do_GET(self):
            self.send_response(201 if self.command == "POST" else 200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_POST = do_PUT = do_GET

    operations = described({"/": {"get": {}, "post": {}}, "/settings/": {"put": {}}}).operations
    with serve_http(Handler) as url, httpx.Client(base_url=url) as client:
        known = KnownValues(templates_of(operations), client.base_url)
        outcomes = explore(operations, client, safety=WRITES, known=known)
        outcomes |= explore_writes(operations, client, known, outcomes).outcomes
    found, left_out = divided(outcomes)
    assert {each.name for each in found} == {"GET /ok/", "GET /", "POST /"}
    assert [(each.name, each.reason) for each in left_out] == [
        ("PUT /settings/", "no operation of the mix creates its object")
    ]


def test_odd_examples_are_no_error():
    text = """
openapi: 3.0.3
paths:
  /x/:
    get:
      parameters:
        - {name: a, in: query, required: true, schema: {anyOf: [{type: string}, {type: integer}]}}
        - {name: b, in: query, required: true, example: &b [*b]}
        - {name: c, in: query, required: true, example: {$ref: "orders/7/open"}}
"""
    loaded = []
    [operation] = read_document(text, "/schema/", load=loaded.append).operations
    assert [each.guesses for each in operation.query] == [("1",), (), ()]
    # An example is data, which names no other file.
    assert loaded == []


def test_header_of_the_user_wins():
    paths = {"/x/": get(parameter("X-Tenant", "header", example="string"))}
    operation = described(paths).operations[-1]
    assert operation.request_headers == {"x-tenant": "string"}
    assert operation.with_values({}, ["x-TENANT"]).request_headers == {}
    given = operation.with_values({"X-Tenant": ("acme",)})
    assert given.request_headers == {"x-tenant": "acme"}
    # What HTTP can't send as it is.
    assert operation.with_values({"X-Tenant": ("Zürich",)}).request_headers == {}


def test_given_value_of_one_of_several_parameters(serve):
    answers = {"/shops/7/orders/": [{"id": 1}], "/shops/7/orders/1/": {}, "/shops/8/orders/": []}
    paths = {"/shops/{shop}/orders/": GET, "/shops/{shop}/orders/{pk}/": GET}
    mix, _, _ = serve(answers, paths, given={"shop": ("7",)})
    assert mix["/shops/{shop}/orders/{pk}/"] == ["/shops/7/orders/1/"]


@pytest.mark.parametrize("given", ["https://other.example/x", "acme", "/orders/7/"])
def test_given_address_is_sent_to_the_target_only(given, serve):
    mix, _, seen = serve({"/orders/7/": {}}, {"{order_href}": GET}, given={"order_href": (given,)})
    assert mix.get("{order_href}", []) == ([given] if given.startswith("/") else [])
    assert {path for path, _ in seen} <= {"/ok/", "/orders/7/"}


@pytest.mark.parametrize("path", ["/x/{}/", "/x/{1}/", "/x/{адрес}/", "{1}", "/x/{a}{b}/"])
def test_odd_names_of_parameters_are_left_out(path, serve):
    _, reasons, _ = serve({}, {path: GET})
    assert reasons[path].startswith("no value found for {")


@pytest.mark.parametrize(
    "page",
    [
        "<a href='http://[x]/'>1</a><a href='/items/3/'>2</a>",
        "<a href='items/3/'>relative</a>",
        "<form action='/items/3/' method=GET></form><form method=post action='/items/4/'></form>",
        "<a href='/items/3/'>before</a><![foo[",
        "<a href='//other/items/4/'></a><a href='http://other/items/4/'></a><a href='/items/3/?q'>",
    ],
)
def test_links_of_a_page_are_values(page, serve):
    def html(handler):
        body = page.encode()
        handler.send_response(200)
        handler.send_header("Content-Type", "text/html; charset=utf-8")
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    mix, _, seen = serve({"/": html, "/items/3/": {}}, {"/": GET, "/items/{id}/": GET})
    assert mix["/items/{id}/"] == ["/items/3/"]
    assert "/items/4/" not in {path for path, _ in seen}


def test_values_that_the_user_gives(serve):
    answers = {"/orgs/": [{"id": 1}], "/orgs/1/": {}, "/orgs/me/": {}, "/x/?q=red&n=2": {}}
    paths = {
        "/orgs/": GET,
        "/orgs/{id}/": GET,
        "/x/": get(parameter("q", "query"), parameter("n", "query", example="1")),
    }
    mix, _, _ = serve(answers, paths, given={"id": ("me",), "q": ("red",), "n": ("2",)})
    assert mix["/orgs/{id}/"] == ["/orgs/me/"]
    assert mix["/x/"] == ["/x/?q=red&n=2"]


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/orgs/{org}/jobs/{number}/", "no value found for {number}"),
        ("/empty/{key}/", "no value found for {key}: the list /empty is empty"),
        ("/x/{a}/{b}/", "no value found for {a}, {b}"),
    ],
)
def test_reason_names_what_is_missing(path, reason, serve):
    answers = {"/orgs/": [{"id": 3}], "/orgs/3/": {}, "/empty/": {"count": 0, "results": []}}
    _, reasons, _ = serve(answers, {"/orgs/": GET, "/orgs/{org}/": GET, "/empty/": GET, path: GET})
    assert reasons[path] == reason


# Answers that are a login instead.


def _site(redirects):
    """Return pages that need the cookie `s=1`: without it, a redirect or the login page."""

    class Site(QuietHandler):
        def do_GET(self):
            is_known = "s=1" in self.headers.get("Cookie", "") or self.path == "/ok/"
            body = f"<a href='/'>{self.path if is_known else 'Log in'}</a>".encode()
            self.send_response(302 if redirects and not is_known else 200)
            self.send_header("Location", f"/login/?next={self.path}")
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Site


@pytest.mark.parametrize("cookie", ["s=1", "s=0", ""])
@pytest.mark.parametrize("redirects", [True, False])
def test_login_instead_of_answers_is_said(redirects, cookie, capsys):
    operations = described({f"/{name}/": GET for name in ("a", "b", "c")}).operations
    headers = {"Cookie": cookie} if cookie else {}
    with (
        serve_http(_site(redirects)) as url,
        httpx.Client(base_url=url, headers=headers) as client,
        httpx.Client(base_url=url) as stranger,
    ):
        session = Session(client, stranger) if cookie else None
        said = "redirect to /login/" if redirects else "are the same page"
        if cookie == "s=0":
            with pytest.raises(LabError, match=f"^3 of 4 answers {said}: it asks for a login"):
                explore(operations, client, session=session)
            return
        found, _ = divided(explore(operations, client, session=session))
    assert len(found) == (1 if redirects and not cookie else 4)
    assert (said in capsys.readouterr().err) == (not cookie)


# Records of another deployment.


def test_addresses_of_a_record_that_the_target_does_not_answer_fall_away(serve):
    class Handler(QuietHandler):
        def do_GET(self):
            self.send_response(200 if self.path in ("/a/1/", "/a/3/") else 404)
            self.send_header("Content-Length", "0")
            self.end_headers()

    def operation(name, *paths, weight=1.0):
        requests = tuple(Request(path=path) for path in paths)
        return Operation(name=name, method="GET", weight=weight, expect=304, requests=requests)

    gone = operation("GET /gone/", "/gone/")
    places = [(0, 0), (1, 0), (1, 1), (1, 2), (1, 0)]
    arrivals = [Arrival(at=i, operation=o, request=r) for i, (o, r) in enumerate(places)]
    some = operation("GET /a/{id}/", "/a/1/", "/a/2/", "/a/3/", weight=30)
    mix = Mix(source="log", operations=(gone, some), arrivals=tuple(arrivals))
    with serve_http(Handler) as url, httpx.Client(base_url=url) as client:
        answered = keep_answered(mix, client)
        with pytest.raises(LabError, match="--untried"):
            keep_answered(Mix(source="log", operations=(gone,)), client)

    [kept] = answered.mix.operations
    assert [each.path for each in kept.requests] == ["/a/1/", "/a/3/"]
    assert (kept.weight, kept.expect) == (20, 200)
    assert [each.name for each in answered.mix.left_out] == ["GET /gone/"]
    found = [(each.at, each.operation, each.request) for each in answered.mix.arrivals]
    assert found == [(1, 0, 0), (3, 0, 1), (4, 0, 0)]
    assert answered.lost == (
        "GET /a/{id}/: 1 of 3 addresses are left out: answered 404",
        "2 of 5 arrivals are left out with their addresses",
    )


# What the user reads.


def test_reasons_are_counted_before_the_list():
    reasons = ["/a/ answered 404", "/b/ answered 404", "http://h/c/ redirects to /x/"]
    reasons += [f"no value found for {{p{i}}}: the list /l is empty" for i in range(40)]
    left_out = [
        {"name": f"GET /{i}/", "status": None, "reason": reason} for i, reason in enumerate(reasons)
    ]
    document = {"operations": [], "left_out": left_out, "file": "m.json", "target": "t"}
    console = Console(width=120, file=io.StringIO())
    console.print(mix(document))
    lines = [" ".join(line.split()) for line in console.file.getvalue().splitlines()]
    counts = ["40 no value found", "2 answered 404", "1 redirects to /x/"]
    assert [line for line in lines if line in counts] == counts
    assert lines.index(counts[-1]) < lines.index("GET /0/ /a/ answered 404")
    assert "and 13 more" in lines


@pytest.mark.parametrize("name", ["GET /api/order/{id}/", "order_retrieve", "GET /api/orders/{pk}"])
def test_unknown_operation_is_an_error_with_the_nearest(name):
    known = {"GET /api/orders/{id}/", "/api/orders/{id}/", "orders_retrieve", "GET /x/"}
    with pytest.raises(UsageError, match=r"orders[/_]"):
        _require_known([name], known)
    _require_known(known, known)
