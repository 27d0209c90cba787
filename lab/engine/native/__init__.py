"""The stack as plain processes under supervisor."""

from lab.engine.native.engine import NativeEngine

__all__ = ["NativeEngine"]
