"""OpenAPI documents: what is read from them, and the errors of what is none."""

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from load_lab.errors import UsageError
from load_lab.targets.sources.openapi import Parameter, read_document
from tests.support.small_api import DOCUMENT


def _read(paths, source="document", **document):
    text = json.dumps({"openapi": "3.1.0", "paths": paths, **document})
    return {operation.name: operation for operation in read_document(text, source).operations}


def test_json_and_yaml_describe_the_same_operations():
    operations = read_document(json.dumps(DOCUMENT), "document").operations

    assert (
        read_document(yaml.safe_dump(DOCUMENT, sort_keys=False), "document").operations
        == operations
    )
    assert [operation.name for operation in operations][:4] == [
        "GET /api/start/",
        "GET /api/hotels/",
        "POST /api/hotels/",
        "GET /api/hotels/{id}/",
    ]


def test_parameters_of_path_and_operation():
    def parameter(name, place, **members):
        return {"name": name, "in": place, **members}

    read = _read(
        {
            "/x/{a}/{b}": {
                "parameters": [
                    parameter("b", "path", example="of the path"),
                    parameter("c", "query", required=True),
                ],
                "get": {
                    "parameters": [
                        {"$ref": "#/components/parameters/b"},
                        parameter("d", "query"),
                        parameter("e", "header", required=True),
                    ]
                },
            }
        },
        components={"parameters": {"b": parameter("b", "path", example=7)}},
    )

    assert read["GET /x/{a}/{b}"].path == (Parameter("a"), Parameter("b", ("7",)))
    assert read["GET /x/{a}/{b}"].query == (Parameter("c"),)


@pytest.mark.parametrize(
    ("parameter", "values"),
    [
        ({"example": 0, "schema": {"default": 1, "enum": [2, 1]}}, ("0", "1", "2")),
        ({"examples": {"x": {"$ref": "#/components/examples/x"}}}, ("e",)),
        ({"schema": {"examples": ["a", None, {}, "b"]}}, ("a", "b")),
        ({"schema": {"anyOf": [{"type": "null"}, {"const": "c"}]}}, ("c",)),
        ({"schema": {"type": "array", "items": {"enum": ["p", "q"]}}}, ("p", "q")),
        ({"schema": {"type": "boolean"}}, ("true", "false")),
        ({"schema": {"$ref": "#/components/schemas/Kind", "default": "k"}}, ("k", "l")),
        ({"schema": {"$ref": "#/components/schemas/Tree"}}, ("t",)),
        ({"schema": {"$ref": "other.yaml#/Kind"}}, ()),
        ({"schema": {"$ref": "#/components/schemas/Self"}}, ()),
        ({"schema": {"$ref": "#/components/nothing/0"}}, ()),
        ({"example": "two\nlines", "schema": []}, ()),
    ],
)
def test_values_of_a_parameter(parameter, values):
    schemas = {
        "Kind": {"enum": ["k", "l"]},
        "Tree": {"allOf": [{"$ref": "#/components/schemas/Tree"}, {"default": "t"}]},
        "Self": {"$ref": "#/components/schemas/Self"},
    }
    components = {"schemas": schemas, "examples": {"x": {"value": "e"}}}
    paths = {"/{p}": {"get": {"parameters": [{"name": "p", "in": "path", **parameter}]}}}

    assert _read(paths, components=components)["GET /{p}"].path == (Parameter("p", values),)


def test_dates_of_yaml_are_values():
    parameter = "{name: day, in: path, example: 2026-01-31}"
    text = f"openapi: 3.0.3\npaths:\n  /{{day}}:\n    get: {{parameters: [{parameter}]}}\n"

    assert read_document(text, "document").operations[0].path == (
        Parameter("day", ("2026-01-31",)),
    )


@pytest.mark.parametrize(
    ("url", "source", "template"),
    [
        ("/", "document", "/x"),
        ("/v1/", "document", "/v1/x"),
        ("https://example.org/v1", "document", "/v1/x"),
        ("v1", "document", "/v1/x"),
        ("v1", "http://127.0.0.1/api/openapi.json", "/api/v1/x"),
        ("", "http://127.0.0.1/api/openapi.json", "/x"),
    ],
)
def test_path_of_the_server_comes_first(url, source, template):
    assert f"GET {template}" in _read({"/x": {"get": {}}}, source, servers=[{"url": url}])


def test_server_of_a_path_overrides_that_of_the_document():
    servers = {"servers": [{"url": "/special"}]}

    assert "GET /special/x" in _read({"/x": {"get": {}, **servers}}, servers=[{"url": "/v1"}])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is empty"),
        (" \n", "is empty"),
        ("<!doctype html><html></html>", "is a web page"),
        ("{'openapi': 3}", "is not valid JSON"),
        ('{"openapi": "3.0.0"', "is not valid JSON"),
        ("[" * 100_000, "is not valid JSON"),
        ("a: b: c", "is not valid YAML"),
        ("- " * 100_000, "is not valid YAML: more than 500 levels"),
        ("!!python/object/apply:os.system [id]", "is not valid YAML"),
        ("Not found", "is not an object, but 'Not found'"),
        ("[]", "is not an object"),
        ("{}", "has no version"),
        ('{"swagger": "2.0", "paths": {"/x": {"get": {}}}}', "is Swagger 2.0; .* Convert it"),
        ('{"openapi": "3.2.0"}', "is OpenAPI 3.2.0; 3.0 or 3.1 is needed"),
        ("openapi: 3.1.0", "describes no GET operation"),
        ('{"openapi": "3.1.0", "paths": {"/x": {"post": {}}}}', "describes no GET operation"),
        (
            '{"openapi": "3.1.0", "paths": {"/x": {"$ref": "x.yaml"}}}',
            r"describes no GET operation that can be sent\.\n  /x: refers to x\.yaml, which can't",
        ),
        ('{"openapi": "3.1.0", "paths": {"x-note": {"get": {}}}}', "describes no GET operation"),
        (
            '{"openapi": "3.1.0", "servers": [{"url": "http://["}], "paths": {"/x": {"get": {}}}}',
            r"invalid address in servers\[\].url: http://\[",
        ),
    ],
)
def test_document_that_cannot_be_used(text, problem):
    with pytest.raises(UsageError, match=f"^schema.txt .*{problem}"):
        read_document(text, "schema.txt")


_WORDS = st.sampled_from(
    ["get", "parameters", "name", "in", "path", "query", "schema", "$ref", "allOf", "url", "enum"]
)
_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | _WORDS
    | st.sampled_from(["#", "#/", "#/paths", "#/paths/~1x/get", "#/servers/0", "http://["]),
    lambda each: st.lists(each, max_size=4) | st.dictionaries(_WORDS | st.text(), each, max_size=4),
    max_leaves=30,
)
_DOCUMENTS = st.fixed_dictionaries(
    {"openapi": st.sampled_from(["3.0.3", "3.1.0", 3.1])},
    optional={
        "paths": _JSON | st.dictionaries(st.just("/x") | st.text(), _JSON, max_size=4),
        "servers": _JSON | st.lists(_JSON, max_size=2),
        "security": _JSON,
        "components": _JSON,
    },
)


@given(document=_JSON | _DOCUMENTS)
def test_any_json_is_read_or_is_a_usage_error(document):
    try:
        operations = read_document(json.dumps(document), "document").operations
    except UsageError:
        return
    assert all(operation.template.startswith("/") for operation in operations)


@given(text=st.text())
def test_any_text_is_a_usage_error(text):
    with pytest.raises(UsageError):
        read_document(text, "document")
