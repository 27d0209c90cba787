"""Addresses of an operation that may exist, the most certain first."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import TypeVar
from urllib.parse import urlencode

from load_lab.targets.sources.answers import Answers, Values, plain
from load_lab.targets.sources.openapi import ApiOperation, Parameter
from load_lab.targets.sources.placeholders import fill

# The origin of values that are certain, and may be few.
ADDRESSES = "addresses"
# Fields that identify an item, the most usual first, if none has the parameter's name.
_IDENTIFIERS = ("id", "pk", "uuid", "slug", "code", "key", "name", "")
# Values of each parameter that are combined with those of the others.
_MOST_COMBINED = 50
# Multiples of it, modulo 1, are spread evenly (https://oeis.org/A094214).
_GOLDEN_RATIO = (5**0.5 - 1) / 2

_T = TypeVar("_T")


@dataclass(frozen=True)
class Candidate:
    """An address; `values` are those of its placeholders."""

    path: str
    values: Values


@dataclass(frozen=True)
class Finding:
    """Candidates from one place, which is `origin`."""

    origin: str
    candidates: Iterator[Candidate]


def find_candidates(operation: ApiOperation, answers: Answers, seed: int) -> Iterator[Finding]:
    """Yield the candidates of an operation from each place, the most certain first. The first
    candidates are spread evenly over all of the place; another seed begins elsewhere.
    """
    found = list(islice(queries(operation, answers), _MOST_COMBINED))
    for origin, values in _values(operation, answers):
        pairs = list(product(dict.fromkeys(values), found))
        yield Finding(origin, _candidates(operation, _spread(pairs, seed)))


def _candidates(
    operation: ApiOperation, pairs: Iterable[tuple[Values, str]]
) -> Iterator[Candidate]:
    for values, query in pairs:
        # A client removes "." and ".." from a path.
        if not {".", ".."} & set(values):
            yield Candidate(fill(operation.template, values) + query, values)


def _spread(values: Sequence[_T], seed: int) -> list[_T]:
    """Return the values in an order whose beginning, of any length, is spread evenly over them."""
    order = sorted(range(len(values)), key=lambda i: (i + seed) * _GOLDEN_RATIO % 1)
    return [values[i] for i in order]


def missing_values(operation: ApiOperation, answers: Answers) -> str:
    """Return why an operation has no candidate."""
    names = [p.name for p in operation.query if not _pool(p, answers)]
    missing = names or [f"{{{p.name}}}" for p in operation.path]
    return f"no value found for {', '.join(missing)}"


def _values(operation: ApiOperation, answers: Answers) -> Iterator[tuple[str, Iterable[Values]]]:
    """Yield origins, and values of all placeholders together."""
    if not operation.path:
        yield "path", [()]
        return
    *before, last = operation.path
    yield ADDRESSES, answers.known(operation.template, len(operation.path))
    items = answers.items_above(operation.template)
    for field in identifiers(last.name):
        yield f"items {field}", [(*i.outer, i.fields[field]) for i in items if field in i.fields]
    outer = answers.known(operation.template, len(before)) or _combined(before, answers)
    outer = list(islice(outer, _MOST_COMBINED))
    yield "document", [(*values, value) for values in outer for value in last.values]
    fields = answers.fields(last.name)[:_MOST_COMBINED]
    yield "fields", [(*values, value) for values in outer for value in fields]


def identifiers(name: str) -> tuple[str, ...]:
    """Return the fields of an item that may be the value of a parameter: its whole name, the last
    word of it (`slug` of `order_slug`), then the usual ones.
    """
    last_word = re.split(r"[_-]|(?<=[a-z])(?=[A-Z])", name)[-1]
    return tuple(dict.fromkeys((plain(name), plain(last_word), *_IDENTIFIERS)))


def _combined(parameters: Iterable[Parameter], answers: Answers) -> Iterator[Values]:
    """Yield combinations of the values of each parameter."""
    return product(*(_pool(parameter, answers)[:_MOST_COMBINED] for parameter in parameters))


def _pool(parameter: Parameter, answers: Answers) -> list[str]:
    return [*parameter.values, *answers.fields(parameter.name)]


def queries(operation: ApiOperation, answers: Answers) -> Iterator[str]:
    """Yield query strings that have the required parameters."""
    names = [parameter.name for parameter in operation.query]
    for values in _combined(operation.query, answers):
        yield f"?{urlencode(list(zip(names, values, strict=True)))}" if names else ""
