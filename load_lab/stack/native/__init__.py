"""The stack as plain processes under supervisor."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from load_lab.stack.native.engine import NativeEngine

__all__ = ["NativeEngine"]


def __getattr__(name: str) -> Any:
    """Import the engine on first use: programs of this package start without it."""
    if name != "NativeEngine":
        raise AttributeError(name)
    from load_lab.stack.native.engine import NativeEngine

    return NativeEngine
