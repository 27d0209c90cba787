"""Runners for the pinned old stacks of published experiments (experiments/legacy/)."""
