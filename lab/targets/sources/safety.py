"""Which operations are sent: those that only read, and those that write what the mix created."""

import re
from collections.abc import Collection

from lab.targets.mix import SAFE_METHODS, WRITING_WORDS, writing_word
from lab.targets.sources.openapi import ApiOperation

# What an operation that writes may not do: it would change more than its object.
_FORBIDDEN = frozenset({"login", "password"})
# What DELETE says anyway.
_DELETES = frozenset({"delete", "destroy", "remove"})


def unsafe_reason(operation: ApiOperation, named: Collection[str]) -> str:
    """Return why an operation is not sent; "" if it only reads.

    `named` are names, templates or ids of operations that the user allows.
    """
    if operation.method not in SAFE_METHODS:
        return f"not safe: {operation.method}"
    return "" if is_named(operation, named) else _reason(operation.template, operation.operation_id)


def forbidden_reason(operation: ApiOperation, named: Collection[str]) -> str:
    """Return why an operation that writes is not sent; "" if it is."""
    if is_named(operation, named):
        return ""
    words = _words(operation.template) | _words(operation.operation_id)
    expected = _DELETES if operation.method == "DELETE" else frozenset()
    found = sorted(words & (WRITING_WORDS | _FORBIDDEN) - expected)
    return f"not safe: word `{found[0]}`" if found else ""


def is_named(operation: ApiOperation, named: Collection[str]) -> bool:
    return bool({operation.name, operation.template, operation.operation_id} & set(named))


def _reason(*texts: str) -> str:
    words = (writing_word(_separated(text)) for text in texts)
    word = next(filter(None, words), None)
    return f"not safe: word `{word}`" if word else ""


def _words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]+", _separated(text).lower()))


def _separated(text: str) -> str:
    """Return the text with spaces in camel case, which writing_word does not know: `userLogout`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text)
