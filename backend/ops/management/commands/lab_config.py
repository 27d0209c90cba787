"""Print the settings that affect the results."""

import json
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser


class Command(BaseCommand):
    help = "Print the active lab settings."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="Print one JSON document.")

    def handle(self, *_args: Any, **options: Any) -> None:
        active = settings.LAB.of_backend()
        if options["json"]:
            self.stdout.write(json.dumps(active, indent=2))
        else:
            self.stdout.write("\n".join(f"{name}={value}" for name, value in active.items()))
