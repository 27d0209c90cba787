"""Refusals of settings, in words: pydantic's, for whoever wrote the setting."""

from collections.abc import Iterable
from typing import Any


def explain(error: Any, known: Iterable[str]) -> str:
    """What was found, and what is allowed; `known` are the names of all settings."""
    name = str(error["loc"][0]) if error["loc"] else ""
    where = "Change it in the shell, in .env or by `lab set`; .env.example explains each setting."
    match error["type"]:
        case "extra_forbidden":
            return f"There is no setting {name}. Known: {', '.join(known)}."
        case "missing":
            return f"{name} is not set. .env.example has its default."
        case "literal_error":
            allowed = error["ctx"]["expected"].replace("'", "").replace(" or ", ", ")
            return f"{name}={error['input']} is not known. Allowed: {allowed}. {where}"
        case "value_error" if not name:
            return f"{error['ctx']['error']}. {where}"
        case "value_error":
            return (
                f"{name}={error['input']} is not known. Allowed: {error['ctx']['error']}. {where}"
            )
        case _:
            return f"{name}={error['input']} does not fit: {error['msg']}. {where}"
