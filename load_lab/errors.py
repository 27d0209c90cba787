"""Errors that are shown to the user. They are caught once, in `load_lab.cli.main`."""


class LabError(Exception):
    """A failure. The message has what happened, which value, and what to do."""

    exit_code = 1


class Interrupted(LabError):
    """Ctrl-C was pressed, and the current work has ended."""


class UsageError(LabError):
    """A usage error: an unknown name, or an invalid value."""

    exit_code = 2
