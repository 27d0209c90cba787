"""The operations of an OpenAPI document, version 3.0 or 3.1."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, get_args
from urllib.parse import urljoin, urlsplit

from load_lab.errors import UsageError
from load_lab.targets.mix import SAFE_METHODS, Method
from load_lab.targets.sources.json_or_yaml import Node, parse_document
from load_lab.targets.sources.placeholders import parameter_names

_METHODS: Final[dict[str, Method]] = {method.lower(): method for method in get_args(Method)}
_READ_VERSIONS = re.compile(r"3\.[01](\..*)?")


@dataclass(frozen=True)
class Parameter:
    """A parameter that a request must have. `values`: the document's examples, default, enum."""

    name: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True)
class ApiOperation:
    """An operation that a document describes.

    `template` begins with the path of the document's server; `path` has the parameters in its
    order; `query` has the required ones. `credentials` are the headers that may authenticate a
    request, as in "Authorization: Bearer …". `body` is the description of the request's body.
    `views` are the names of what answers this operation.
    """

    method: Method
    template: str
    operation_id: str
    path: tuple[Parameter, ...]
    query: tuple[Parameter, ...]
    credentials: tuple[str, ...]
    views: tuple[str, ...] = ()
    body: Node = field(default=Node(None, None), compare=False, repr=False)

    @property
    def name(self) -> str:
        return f"{self.method} {self.template}"


def read_operations(text: str, source: str) -> tuple[ApiOperation, ...]:
    """Read the operations of a document, in its order; `source` is its address or file.

    Raises:
        UsageError: it is no OpenAPI document, one of another version, or has no GET operation.
    """
    root = parse_document(text, source)
    _require_version(root, source)
    operations = tuple(
        operation
        for template, item in root.at("paths").members()
        for operation in _operations(template, item, root, source)
    )
    if not any(operation.method in SAFE_METHODS for operation in operations):
        raise UsageError(
            f"{source} describes no GET operation. If its `paths` refer to other files, bundle "
            "them into one document first."
        )
    return operations


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


def _operations(template: str, item: Node, root: Node, source: str) -> Iterator[ApiOperation]:
    """Yield the operations of a path item; an extension (`x-…`) has none."""
    if not template.startswith("/"):
        return
    for key, operation in item.members():
        method = _METHODS.get(key)
        server = next((n for n in (operation, item, root) if any(n.at("servers").elements())), root)
        whole = _prefix(server, source) + template if method else ""
        # A character that cannot be printed cannot be sent either.
        if method and whole.isprintable():
            required = _parameters(item, operation)
            yield ApiOperation(
                method=method,
                template=whole,
                operation_id=operation.at("operationId").text(),
                path=tuple(
                    required.get(("path", name), Parameter(name)) for name in parameter_names(whole)
                ),
                query=tuple(p for (place, _), p in required.items() if place == "query"),
                credentials=_credentials(operation, root),
                views=(operation.at("operationId").text(),),
                body=operation.at("requestBody"),
            )


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
        (place, name): Parameter(name, _values(node))
        for (place, name), node in nodes.items()
        if place == "path" or node.at("required").text() == "true"
    }


def _values(parameter: Node) -> tuple[str, ...]:
    """Return the values that the document names, the most certain first."""
    schemas = list(_schemas(parameter.at("schema")))
    nodes = [parameter.at("example")]
    nodes += [example.at("value") for _, example in parameter.at("examples").members()]
    for key in ("example", "examples", "default", "const", "enum"):
        nodes += [schema.at(key) for schema in schemas]
    texts = [text for node in nodes for text in node.texts()]
    if any(schema.at("type").text() == "boolean" for schema in schemas):
        texts += ["true", "false"]
    return tuple(dict.fromkeys(texts))


def _schemas(schema: Node) -> Iterator[Node]:
    """Yield a schema and those that it is composed of. A schema may contain itself."""
    waiting, seen = [schema], set[int]()
    while waiting:
        node = waiting.pop(0)
        if node.place not in seen:
            seen.add(node.place)
            yield node
            for key in ("allOf", "anyOf", "oneOf"):
                waiting.extend(node.at(key).elements())
            waiting.append(node.at("items"))


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
