"""The operations of an OpenAPI document, version 3.0 or 3.1."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final, get_args
from urllib.parse import urljoin, urlsplit

from lab_settings.messages import shorten

from load_lab.errors import UsageError
from load_lab.targets.mix import SAFE_METHODS, LeftOut, Method
from load_lab.targets.sources.described import ApiOperation, Described, Parameter
from load_lab.targets.sources.document import Json, Load, Node, parse_document, text_of
from load_lab.targets.sources.paths import below, parameter_names, words
from load_lab.targets.sources.safety import credential_in_form
from load_lab.targets.sources.schemas import FORMATS, Schema, read_examples, read_schema

_METHODS: Final[dict[str, Method]] = {method.lower(): method for method in get_args(Method)}
_READ_VERSIONS = re.compile(r"3\.[01](\..*)?")


# Of what was left out, in an error.
_MOST_SHOWN = 5
# Headers of a request that no document decides: who asks, in which form, for which method, and
# those of one connection (RFC 9110, 7.6.1).
_OWN_HEADERS = frozenset(
    {
        *("accept", "authorization", "connection", "content-length", "content-type", "cookie"),
        *("expect", "host", "keep-alive", "proxy-authorization", "proxy-connection", "te"),
        *("trailer", "transfer-encoding", "upgrade", "x-http-method", "x-http-method-override"),
        "x-method-override",
    }
)


def read_document(
    text: str, source: str, *, base_path: str = "", load: Load | None = None
) -> Described:
    """Read the operations of a document, in its order; `source` is its address or file.

    Each operation of a path item that can be read is in the result or left out, and so is each path
    item that can't. `base_path` is that of the target's address, which templates don't repeat.
    `load` returns the text of another file, to which the document refers.

    Raises:
        UsageError: it is no OpenAPI document, one of another version, or has no GET operation.
    """
    root = parse_document(text, source, load)
    _require_version(root, source)
    found = [
        each
        for path, item in root.at("paths").members()
        for each in _operations(path, item, root, source, base_path)
    ]
    operations = tuple(each for each in found if isinstance(each, ApiOperation))
    left_out = tuple(each for each in found if isinstance(each, LeftOut))
    if not any(each.method in SAFE_METHODS for each in operations):
        reasons = "".join(f"\n  {each.name}: {each.reason}" for each in left_out[:_MOST_SHOWN])
        raise UsageError(f"{source} describes no GET operation that can be sent.{reasons}")
    return Described(operations, source, left_out)


def _require_version(root: Node, source: str) -> None:
    if swagger := root.at("swagger").text():
        raise UsageError(
            f"{source} is Swagger {swagger}; OpenAPI 3.0 or 3.1 is needed. Convert it, for example "
            "with swagger2openapi, or generate it with drf-spectacular instead of drf-yasg."
        )
    version = root.at("openapi").text()
    if not version:
        raise UsageError(f"{source} is no OpenAPI document: it has no version `openapi: 3.…`.")
    if not _READ_VERSIONS.fullmatch(version):
        raise UsageError(
            f"{source} is OpenAPI {version}; 3.0 or 3.1 is needed. Convert it, or set the version "
            "in the program that generates it."
        )


def _operations(
    path: str, item: Node, root: Node, source: str, base_path: str
) -> Iterator[ApiOperation | LeftOut]:
    """Yield the operations of a path item; an extension (`x-…`) has none."""
    if path.startswith("x-"):
        return
    if not item.is_object:
        reason = f"refers to {item.unread}, which can't be read" if item.unread else "no path item"
        yield LeftOut(name=shorten(path), reason=reason)
    for key, operation in item.members():
        if method := _METHODS.get(key):
            server = next((n for n in (operation, item) if any(n.at("servers").elements())), root)
            template, problem = _template(path, server, source, base_path)
            if problem:
                yield LeftOut(name=f"{method} {shorten(path)}", reason=problem)
            else:
                yield _operation(method, template, item, operation, root)


def _template(path: str, server: Node, source: str, base_path: str) -> tuple[str, str]:
    """Return the template of a path below the target's address, and why it can't be sent."""
    if path.startswith(("http://", "https://")):
        # As DRF writes them if it is told its address.
        whole = "/" + "/".join(path.split("/")[3:])
    elif path.startswith("{"):
        # The parameter is an address.
        return path, ""
    elif not path.startswith("/"):
        return "", "its path does not begin with /"
    else:
        whole = _prefix(server, source) + path
    if not whole.isprintable():
        return "", "its path has a character that can't be sent"
    return below(base_path, whole) or whole, ""


def _operation(
    method: Method, template: str, item: Node, operation: Node, root: Node
) -> ApiOperation:
    required = _parameters(item, operation)

    def of(place: str) -> tuple[Parameter, ...]:
        return tuple(each for (where, _), each in required.items() if where == place)

    return ApiOperation(
        method=method,
        template=template,
        operation_id=operation.at("operationId").text(),
        path=tuple(_path_parameters(template, required)),
        query=of("query"),
        credentials=_credentials(operation, root),
        views=(operation.at("operationId").text(),),
        headers=tuple(
            p for p in of("header") if _is_sent(p) and p.name.lower() not in _OWN_HEADERS
        ),
        cookies=tuple(filter(_is_sent, of("cookie"))),
        request_body=operation.at("requestBody"),
    )


def _is_sent(parameter: Parameter) -> bool:
    """Return whether a header or cookie is none of who asks."""
    return credential_in_form(parameter.name) is None


def _path_parameters(
    template: str, required: Mapping[tuple[str, str], Parameter]
) -> Iterator[Parameter]:
    for name in parameter_names(template):
        parameter = required.get(("path", name), Parameter(name))
        # The suffix of DRF's formats, which stands without a slash: `/orders/{id}{format}`.
        is_suffix = not parameter.values and f"}}{{{name}}}" in template and name == "format"
        yield replace(parameter, values=(".json",)) if is_suffix else parameter


def _prefix(holder: Node, source: str) -> str:
    """Return the path of the first server, without a final slash. A relative one is relative to
    the document's address.
    """
    server = next(holder.at("servers").elements(), holder.at(""))
    url = server.at("url").text() or "/"
    for name, variable in server.at("variables").members():
        url = url.replace(f"{{{name}}}", variable.at("default").text())
    try:
        path = urlsplit(urljoin(source if "://" in source else "", url)).path.rstrip("/")
    except ValueError:
        raise UsageError(f"{source} has an invalid address in servers[].url: {url}.") from None
    return path if path.startswith("/") or not path else f"/{path}"


def _parameters(item: Node, operation: Node) -> dict[tuple[str, str], Parameter]:
    """Return the required parameters by place and name; the operation's override the path's."""
    nodes = {
        (node.at("in").text(), node.at("name").text()): node
        for holder in (item, operation)
        for node in holder.at("parameters").elements()
    }
    return {
        (place, name): _parameter(place, name, node)
        for (place, name), node in nodes.items()
        if place == "path" or node.at("required").is_true
    }


# Small, since some targets refuse a large page.
_SIZES = {"limit": 10, "size": 10, "count": 10, "page": 1, "offset": 0, "skip": 0}


def _parameter(place: str, name: str, node: Node) -> Parameter:
    """Return a parameter with its values, which its schema or that of its content has. One of a
    path names what must exist: no type gives it a value.
    """
    contents = [media for _, media in node.at("content").members()]
    described = next((each.at("schema") for each in contents), node.at("schema"))
    alternatives = [*described.at("anyOf").elements(), *described.at("oneOf").elements()]
    schemas = [read_schema(each) for each in (described, *alternatives)]
    examples = [e for holder in (node, *contents) for e in read_examples(holder, schemas[0])]
    schemas += [each.items for each in schemas if each.items]
    for each in schemas:
        examples += [*each.examples, *each.choices]
    if any(each.kind == "boolean" for each in schemas):
        examples += [True, False]
    guesses = [guess for each in schemas for guess in _guesses(name, each)]
    return Parameter(name, _texts(examples), () if place == "path" else _texts(guesses))


def _guesses(name: str, schema: Schema) -> list[Json]:
    """Return what the type of a parameter allows."""
    if schema.kind in ("integer", "number"):
        lowest = [] if schema.minimum is None else [schema.minimum]
        return [*lowest, _SIZES.get((words(name) or [""])[-1], 1)]
    return [FORMATS[schema.format]] if schema.format in FORMATS else []


def _texts(values: list[Json]) -> tuple[str, ...]:
    """Return the values as an address has them; of a list, each of its items."""
    items = (each for value in values for each in (value if isinstance(value, list) else [value]))
    return tuple(dict.fromkeys(filter(None, map(text_of, items))))


def _credentials(operation: Node, root: Node) -> tuple[str, ...]:
    """Return the headers of the security schemes that the operation requires one of."""
    holder = operation if any(operation.at("security").elements()) else root
    schemes = root.at("components").at("securitySchemes")
    names = [name for each in holder.at("security").elements() for name, _ in each.members()]
    headers = (_header(schemes.at(name)) for name in dict.fromkeys(names))
    return tuple(header for header in headers if header)


def _header(scheme: Node) -> str:
    kind, place, name = (scheme.at(key).text() for key in ("type", "in", "name"))
    match kind, place:
        case "apiKey", "header":
            return f"{name}: …"
        case "apiKey", "cookie":
            return f"Cookie: {name}=…"
        case "http", _:
            return f"Authorization: {scheme.at('scheme').text().capitalize()} …"
        case (("oauth2" | "openIdConnect"), _):
            return "Authorization: Bearer …"
        case _:
            return ""
