"""The workbench's worker (workbench/layer.py): python -m config.server.worker

`manage.py runworker`, but it ends when it is told to: as a container's first process it would not
hear TERM without a handler of its own.
"""

import os
import signal
import sys

from django.core.management import execute_from_command_line


def main() -> None:
    """Answer until TERM."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    # Of workbench/layer.py, which can't be imported before Django is set up.
    execute_from_command_line(["manage.py", "runworker", "workbench-hello"])


if __name__ == "__main__":
    main()
