"""Error messages for invalid settings."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, TypeVar

from pydantic import ValidationError

from lab_settings.declaration import Declaration

_Model = TypeVar("_Model", bound=Declaration)
# The longest part of a value that a message shows.
_MAX_SHOWN = 60
_HINT = "Change it where you set it: shell, .env or `lab set`. .env.example describes each setting."


class SettingsError(ValueError):
    """A setting is unknown or has an invalid value. The message lists what is allowed."""


def parse(model: type[_Model], values: Mapping[str, Any]) -> _Model:
    """Return the settings in `values` (environment variables); the others have their defaults.

    Raises:
        SettingsError: a name is unknown, or a value is invalid.
    """
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        raise SettingsError("\n".join(_message(each) for each in error.errors())) from None


def problem(error: Any) -> str:
    """Return the message of one pydantic error, without pydantic's prefix "Value error, "."""
    return str(error["ctx"]["error"]) if error["type"] == "value_error" else str(error["msg"])


def shorten(value: object) -> str:
    """Return the value for a message, on one line and not longer than it."""
    text = str(value)
    shown = text if text.isprintable() else ascii(text)
    return shown if len(shown) <= _MAX_SHOWN else f"{shown[:_MAX_SHOWN]}… ({len(text)} characters)"


def _message(error: Any) -> str:
    name = shorten(error["loc"][0]) if error["loc"] else ""
    value = shorten(error["input"])
    match error["type"]:
        case "extra_forbidden":
            return f"There is no setting {name}. {_similar(name)}"
        case "enum":
            allowed = error["ctx"]["expected"].replace("'", "").replace(" or ", ", ")
            return f"{name}={value} is invalid. Allowed: {allowed}. {_HINT}"
        case "value_error" if not name:
            return f"{error['ctx']['error']}. {_HINT}"
        case "value_error":
            allowed = error["ctx"]["error"]
            return f"{name}={value} is invalid. Allowed: {allowed}. {_HINT}"
        case "greater_than_equal":
            return f"{name}={value} is invalid. Allowed: {error['ctx']['ge']} or more. {_HINT}"
        case "less_than_equal":
            return f"{name}={value} is invalid. Allowed: {error['ctx']['le']} or less. {_HINT}"
        case _:
            return f"{name}={value} is invalid: {problem(error)}. {_HINT}"


def _similar(name: str) -> str:
    if similar := get_close_matches(name, Declaration.model_fields, n=1, cutoff=0.8):
        return f"Did you mean {similar[0]}? .env.example describes each setting."
    return f"Known: {', '.join(Declaration.model_fields)}."
