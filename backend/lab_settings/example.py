"""Generate .env.example from the declaration: python -m lab_settings.example > .env.example"""

import textwrap
from collections.abc import Iterator
from enum import StrEnum

from lab_settings.declaration import Declaration

_HEAD = """\
# Every setting of the lab, with its default; made by `make env-example` of
# backend/lab_settings/declaration.py. To change one, copy the line into `.env`, set it in the
# shell, or use `lab set NAME=VALUE` on a running stack.
# Order of precedence: shell, then `.env`, then these defaults.
#
# Not among them, as no result depends on where a thing lies: LAB_STATE_DIR (shell alone), where the
# native engine keeps programs and data (.lab), and LAB_…_IMAGE, another image in place of a compose
# service's. LAB_K6_CPUS is the quota of compose's load container (2).
"""
# Section headings, each by the first setting below it.
_SECTIONS = {
    "LAB_ENGINE": "Engine",
    "LAB_SERVER": "Server",
    "LAB_DETAIL": "Implementations that the lab compares",
    "LAB_WORKBENCH": "The routes of the server experiments",
    "LAB_LOCAL_CACHE": "Cache layers",
    "LAB_LATENCY_MS": "Latency",
    "LAB_SHED": "Limits",
    "LAB_DB_POOL": "Database",
    "LAB_CLIENT_TIMEOUT": "Timeouts, in seconds: each is shorter than the one outside it",
    "LAB_TARGET_CPUS": "CPUs",
    "LAB_BIND": "Ports",
    "LAB_DATA_SEED": "Data",
}
_WIDTH = 99


def example() -> str:
    """Return the text of .env.example."""
    return _HEAD + "".join(line + "\n" for line in _lines())


def _lines() -> Iterator[str]:
    for name, field in Declaration.model_fields.items():
        if name in _SECTIONS:
            yield ""
            yield f"# --- {_SECTIONS[name]} ".ljust(_WIDTH, "-")
        values = _values(field.annotation)
        comment = f"{' | '.join(values)}. {field.description}" if values else field.description
        wrap = textwrap.TextWrapper(_WIDTH, initial_indent="# ", subsequent_indent="# ")
        yield from wrap.wrap(str(comment))
        yield f"{name}={field.default}"


def _values(kind: object) -> list[str]:
    """Return the values of an enumerated setting, or none."""
    return list(kind) if isinstance(kind, type) and issubclass(kind, StrEnum) else []


if __name__ == "__main__":
    print(example(), end="")
