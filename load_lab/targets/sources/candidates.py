"""Addresses of an operation that may exist, the most certain first."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import TypeVar
from urllib.parse import urlencode

from load_lab.targets.sources.described import ApiOperation, Parameter
from load_lab.targets.sources.known_values import KnownValues, plain
from load_lab.targets.sources.paths import Values, fill, shape_above

# The origin of values that are certain, and may be few.
ADDRESSES = "addresses"
# Fields that identify an item, the most usual first, if none has the parameter's name.
_IDENTIFIERS = ("id", "pk", "uuid", "slug", "code", "identifier", "key", "name", "")
# A text for people, which is no value if there are others: `Summer, 5 May`.
_LABEL = re.compile(r"[\s,;]")
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


def find_candidates(
    operation: ApiOperation, known: KnownValues, seed: int
) -> Iterator[tuple[str, Iterator[Candidate]]]:
    """Yield places, and the candidates of an operation from each, the most certain first. The first
    candidates are spread evenly over all of the place; another seed begins elsewhere.
    """
    found = list(islice(queries(operation, known), _MOST_COMBINED))
    for origin, values in _values(operation, known):
        fitting = [each for each in dict.fromkeys(values) if _agree(each, operation)]
        pairs = list(product(fitting, found))
        yield origin, _candidates(operation, _spread(pairs, seed))


def _agree(values: Values, operation: ApiOperation) -> bool:
    """Return whether values are those that the user gives, where there are some."""
    pairs = zip(operation.path, values, strict=True)
    return all(value in parameter.given for parameter, value in pairs if parameter.given)


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


def missing_values(operation: ApiOperation, known: KnownValues) -> str:
    """Return why an operation has no candidate: the parameters without a value."""
    template, count = operation.template, len(operation.path)
    missing = [
        f"{{{p.name}}}"
        for i, p in enumerate(operation.path, start=1)
        if not (_pool(p, known) or known.known(template, i))
    ]
    missing += [p.name for p in operation.query if not _pool(p, known)]
    names = ", ".join(missing or [f"{{{p.name}}}" for p in operation.path])
    is_empty = count and known.is_empty(template)
    return f"no value found for {names}" + (
        f": the list {shape_above(template)} is empty" if is_empty else ""
    )


def _values(operation: ApiOperation, known: KnownValues) -> Iterator[tuple[str, Iterable[Values]]]:
    """Yield origins, and values of all placeholders together."""
    if not operation.path:
        yield "path", [()]
        return
    *before, last = operation.path
    if operation.template.startswith("{"):
        first, *others = operation.path
        rest = list(islice(_combined(others, known), _MOST_COMBINED))
        addresses = first.given or known.addresses(first.name)
        yield "hrefs", [(each, *values) for each in addresses for values in rest]
        return
    if all(parameter.given for parameter in operation.path):
        yield "given", islice(_combined(operation.path, known), _MOST_COMBINED)
        return
    certain = known.known(operation.template, len(operation.path))
    yield ADDRESSES, certain
    items = known.items_above(operation.template)
    for field in identifiers(last.name):
        yield f"items {field}", [(*i.outer, i.fields[field]) for i in items if field in i.fields]
    outer = known.known(operation.template, len(before)) or _combined(before, known)
    outer = list(islice(outer, _MOST_COMBINED))
    yield "document", [(*values, value) for values in outer for value in last.values]
    for origin, found in (
        ("names", known.used(last.name)),
        ("fields", known.fields(last.name)),
    ):
        no_labels = [each for each in found if not _LABEL.search(each)]
        fitting = no_labels if no_labels or certain else found
        yield origin, [(*values, value) for values in outer for value in fitting[:_MOST_COMBINED]]


def identifiers(name: str) -> tuple[str, ...]:
    """Return the fields of an item that may be the value of a parameter: its whole name, what
    stands behind a dot, the last word of it (`slug` of `order_slug`), then the usual ones.
    """
    last_part = name.rpartition(".")[2]
    last_word = re.split(r"[_-]|(?<=[a-z])(?=[A-Z])", last_part)[-1]
    return tuple(dict.fromkeys((plain(name), plain(last_part), plain(last_word), *_IDENTIFIERS)))


def _combined(parameters: Iterable[Parameter], known: KnownValues) -> Iterator[Values]:
    """Yield combinations of the values of each parameter."""
    return product(*(_pool(parameter, known)[:_MOST_COMBINED] for parameter in parameters))


def _pool(parameter: Parameter, known: KnownValues) -> list[str]:
    if parameter.given:
        return list(parameter.given)
    found = (*known.used(parameter.name), *known.fields(parameter.name))
    return list(dict.fromkeys((*parameter.values, *found, *parameter.guesses)))


def queries(operation: ApiOperation, known: KnownValues) -> Iterator[str]:
    """Yield query strings that have the required parameters."""
    names = [parameter.name for parameter in operation.query]
    for values in _combined(operation.query, known):
        yield f"?{urlencode(list(zip(names, values, strict=True)))}" if names else ""
