"""What sources yield: operations that are described, and requests that were observed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple
from urllib.parse import quote

from load_lab.targets.mix import LeftOut, Method, Operation
from load_lab.targets.sources.document import Document, Node
from load_lab.targets.sources.schemas import BodyType, read_body_type


@dataclass(frozen=True)
class Parameter:
    """A parameter that a request must have. `values`: the document's examples, default, enum;
    `guesses`: what its type allows; `given`: what the user says, instead of all others.
    """

    name: str
    values: tuple[str, ...] = ()
    guesses: tuple[str, ...] = ()
    given: tuple[str, ...] = ()

    @property
    def first(self) -> str:
        """Return the value of a header or cookie; "" if there is none."""
        return next(iter((*self.given, *self.values, *self.guesses)), "")

    @property
    def is_sendable(self) -> bool:
        return bool(self.first) and f"{self.name}{self.first}".isascii()


@dataclass(frozen=True)
class ApiOperation:
    """An operation that a document describes.

    `template` begins with the path of the document's server; `path` has the parameters in its
    order; `query` has the required ones, `headers` and `cookies` too. `credentials` are the headers
    that may authenticate a request, as in "Authorization: Bearer …". `request_body` is the
    document's description of it. `views` are the names of what answers this operation, `patterns`
    the regular expressions of a route's parameters.
    """

    method: Method
    template: str
    operation_id: str
    path: tuple[Parameter, ...]
    query: tuple[Parameter, ...]
    credentials: tuple[str, ...]
    views: tuple[str, ...] = ()
    headers: tuple[Parameter, ...] = ()
    cookies: tuple[Parameter, ...] = ()
    patterns: tuple[tuple[str, str], ...] = ()
    request_body: Node = field(default=Node(None, Document(None)), compare=False, repr=False)

    @property
    def name(self) -> str:
        return f"{self.method} {self.template}"

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return (*self.path, *self.query, *self.headers, *self.cookies)

    @property
    def request_headers(self) -> dict[str, str]:
        """Return the headers that each request of it has: those that have a value in ASCII."""
        headers = {each.name.lower(): each.first for each in self.headers if each.is_sendable}
        pairs = [f"{each.name}={quote(each.first)}" for each in self.cookies if each.is_sendable]
        return headers | ({"cookie": "; ".join(pairs)} if pairs else {})

    @cached_property
    def body(self) -> BodyType | None:
        """Return the body that it takes; None for DELETE, and if it is neither JSON nor a form."""
        return None if self.method == "DELETE" else read_body_type(self.request_body)

    @property
    def takes_list(self) -> bool:
        media = self.request_body.at("content").members()
        return any(each.at("schema").at("type").text() == "array" for _, each in media)

    @property
    def has_unknown_body(self) -> bool:
        has_body = any(self.request_body.at("content").members()) and self.method != "DELETE"
        return has_body and self.body is None

    def with_values(
        self, given: Mapping[str, tuple[str, ...]], headers: Iterable[str] = ()
    ) -> "ApiOperation":
        """Return the operation with the values that the user gives for parameters, and without
        those that the `headers` of the user say.
        """
        own = {name.lower() for name in headers}

        def changed(parameters: tuple[Parameter, ...]) -> tuple[Parameter, ...]:
            return tuple(replace(each, given=given.get(each.name, ())) for each in parameters)

        return replace(
            self,
            path=changed(self.path),
            query=changed(self.query),
            headers=changed(tuple(p for p in self.headers if p.name.lower() not in own)),
            cookies=() if "cookie" in own else changed(self.cookies),
        )


@dataclass(frozen=True)
class Described:
    """What a source describes: the operations, and what can't be sent."""

    operations: tuple[ApiOperation, ...]
    source: str
    left_out: tuple[LeftOut, ...] = ()


# What became of each operation that is described.
Outcomes = dict[ApiOperation, Operation | LeftOut]


def divided(outcomes: Outcomes) -> tuple[tuple[Operation, ...], tuple[LeftOut, ...]]:
    """Return what is in a mix, and what is left out: each operation is one of them."""
    values = outcomes.values()
    found = tuple(each for each in values if isinstance(each, Operation))
    return found, tuple(each for each in values if isinstance(each, LeftOut))


Headers = tuple[tuple[str, str], ...]


class Observed(NamedTuple):
    """One request of a record. `target`: path and query string, as sent. `method`: "" if nothing
    that HTTP knows was sent. `time`: Unix time, if its arrival is wanted.
    """

    method: str
    target: str
    status: int
    headers: Headers = ()
    body: str | None = None
    time: float | None = None
