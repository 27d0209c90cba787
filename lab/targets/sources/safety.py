"""Which operations are sent: those that only read."""

import re
from collections.abc import Collection

from lab.targets.mix import SAFE_METHODS, writing_word
from lab.targets.sources.openapi import ApiOperation


def unsafe_reason(operation: ApiOperation, named: Collection[str]) -> str:
    """Return why an operation is not sent; "" if it is. A load that writes would be allowed here.

    `named` are names, templates or ids of operations that the user allows.
    """
    if operation.method not in SAFE_METHODS:
        return f"not safe: {operation.method}"
    return "" if is_named(operation, named) else _reason(operation.template, operation.operation_id)


def is_named(operation: ApiOperation, named: Collection[str]) -> bool:
    return bool({operation.name, operation.template, operation.operation_id} & set(named))


def _reason(*texts: str) -> str:
    # writing_word knows no camel case: `userLogout`.
    separated = (re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text) for text in texts)
    word = next(filter(None, map(writing_word, separated)), None)
    return f"not safe: word `{word}`" if word else ""
