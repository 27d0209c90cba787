"""Pinned old stacks, as published experiments used them: experiments/legacy/ made to run."""
