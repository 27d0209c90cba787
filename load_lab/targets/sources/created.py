"""Objects that a POST created: their ids, and the addresses of the operations that change them."""

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote, unquote, urlsplit

from load_lab.targets.mix import OBJECT
from load_lab.targets.sources.answers import Answers, parse, plain
from load_lab.targets.sources.candidates import identifiers
from load_lab.targets.sources.exchange import Exchange
from load_lab.targets.sources.json_or_yaml import Json
from load_lab.targets.sources.paths import parameter_names, shape

LOCATION = "Location"


@dataclass(frozen=True)
class Identifier:
    """The id of a created object. `id_from`: where the answer has it, see `mix.CreatedBy`."""

    id_from: str
    value: str


def find_identifiers(template: str, exchange: Exchange, answers: Answers) -> Iterator[Identifier]:
    """Yield what may be the last placeholder of the template in the answer that created an object,
    the most certain first.
    """
    prefix, fields = _object(parse(exchange.body))
    for name in identifiers(parameter_names(template)[-1]):
        for key, value in fields.items():
            text = _text(value)
            if text and plain(key) == name:
                yield Identifier(prefix + key, _last_segment(text))
    addresses = [(prefix + key, _text(value)) for key, value in fields.items()]
    for key, text in (*addresses, (LOCATION, exchange.location)):
        match = answers.match(text)
        if match and match.template.shape == _object_shape(template):
            yield Identifier(key, _last_segment(text))


def object_path(creator_path: str, template: str) -> str:
    """Return the path of an operation on an object that a POST to `creator_path` created, with the
    placeholder of the object.
    """
    after = template.rpartition("{")[2].partition("}")[2]
    return f"{creator_path.partition('?')[0].rstrip('/')}/{OBJECT}{after}"


def filled(path: str, identifier: Identifier) -> str:
    return path.replace(OBJECT, quote(identifier.value, safe=""))


def _object_shape(template: str) -> str:
    """Return the shape of the object's own address: `/orders/{}` of `/orders/{id}/photo/`."""
    return shape(template).rpartition("{}")[0] + "{}"


def _object(document: Json) -> tuple[str, dict[str, Json]]:
    """Return the object of an answer, and where it is: `{"article": {…}}` has it in `article.`."""
    if isinstance(document, dict) and len(document) == 1:
        [(key, value)] = document.items()
        if isinstance(value, dict):
            return f"{key}.", value
    return "", document if isinstance(document, dict) else {}


def _text(value: Json) -> str:
    is_id = isinstance(value, str | int) and not isinstance(value, bool)
    return str(value) if is_id else ""


def _last_segment(text: str) -> str:
    """Return the last part of an address; the text itself if it is none."""
    if "/" not in text:
        return text
    try:
        return unquote(urlsplit(text).path.rstrip("/").rpartition("/")[2])
    except ValueError:
        return ""
