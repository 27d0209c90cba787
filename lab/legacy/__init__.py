"""Pinned old stacks, as published experiments used them: legacy/ made to run."""

from lab.legacy.arms import arm

__all__ = ["arm"]
