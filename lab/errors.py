"""The errors that a user sees. They are caught once, in `lab.cli.main`."""


class LabError(Exception):
    """Something failed. The message says what happened, what was found, and what to do."""

    exit_code = 1


class Interrupted(LabError):
    """Someone pressed Ctrl-C, and what was under way has come to its end."""


class UsageError(LabError):
    """The lab was asked for something that it does not know."""

    exit_code = 2
