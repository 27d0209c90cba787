"""`lab bench --growth`."""

from typing import Any

from lab.engine import Engine


def run(engine: Engine, *, repeats: int | None, seconds: int | None) -> dict[str, Any]:
    """Stub."""
    raise NotImplementedError
