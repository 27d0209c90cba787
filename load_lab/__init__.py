"""The `lab` command: start the stack, load it, and say where it breaks."""

__version__ = "0.1.0"
