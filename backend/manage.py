#!/usr/bin/env python
"""Django's command line."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    from config.env import EnvError

    try:
        from django.core.management import execute_from_command_line

        execute_from_command_line(sys.argv)
    except EnvError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit("Interrupted. Unfinished changes were rolled back.")


if __name__ == "__main__":
    main()
