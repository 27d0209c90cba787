"""The workbench's worker (workbench/layer.py): python -m config.server.worker

It is `manage.py runworker` with a handler for SIGTERM, since a container's first process ignores
SIGTERM without one.
"""

import os
import signal
import sys

from django.core.management import execute_from_command_line


def main() -> None:
    """Run the worker until SIGTERM."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    # The channel of workbench/layer.py, which can't be imported before Django is set up.
    execute_from_command_line(["manage.py", "runworker", "workbench-hello"])


if __name__ == "__main__":
    main()
