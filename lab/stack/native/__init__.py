"""The stack as plain processes under supervisor."""

from lab.stack.native.engine import NativeEngine

__all__ = ["NativeEngine"]
