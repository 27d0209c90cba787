"""What the answers of a target contain, as JSON: examples for the bodies of requests."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping

from load_lab.targets.sources.json_or_yaml import Json

# Of each list, and of each name of a field.
_MOST_ITEMS = 20
_MOST_VALUES = 20
_MOST_CHARACTERS = 2000
_MOST_LEVELS = 6


class Samples:
    """Items of lists, and values of fields by their name."""

    def __init__(self) -> None:
        self._items: dict[str, list[dict[str, Json]]] = defaultdict(list)
        self._values: dict[str, dict[str, Json]] = defaultdict(dict)

    def learn(self, shape: str, items: Iterable[Json], document: Json) -> None:
        """Take the items of the list of this shape, and every field of the document."""
        known = self._items[shape]
        objects = [item for item in items if isinstance(item, dict)]
        known += objects[: _MOST_ITEMS - len(known)]
        self._learn_fields(document, _MOST_LEVELS)

    def items(self, shape: str) -> list[dict[str, Json]]:
        return self._items.get(shape, [])

    def lists(self) -> Mapping[str, list[dict[str, Json]]]:
        """Return the items of each list, by its shape."""
        return self._items

    def values(self, name: str) -> list[Json]:
        """Return different values of fields that have this name."""
        return list(self._values.get(name, {}).values())

    def _learn_fields(self, node: Json, levels: int) -> None:
        if isinstance(node, dict) and levels:
            for name, value in node.items():
                self._learn_value(name, value)
                self._learn_fields(value, levels - 1)
        elif isinstance(node, list) and levels:
            for value in node[:_MOST_ITEMS]:
                self._learn_fields(value, levels - 1)

    def _learn_value(self, name: str, value: Json) -> None:
        known = self._values[name]
        if len(known) < _MOST_VALUES and value not in (None, "", [], {}):
            text = json.dumps(value)
            if len(text) <= _MOST_CHARACTERS:
                known[text] = value
