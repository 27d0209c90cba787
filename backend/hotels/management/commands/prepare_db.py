"""Make a database ready for the API: tables, and data where there is none."""

from typing import Any

from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import DatabaseError
from lab_settings.kinds import Switch
from ops.commands import DatabaseCommand


class Command(DatabaseCommand):
    """One process for all steps, since each start of Django takes a second of CPU time."""

    help = "Migrate the database, and load the data of the settings where a table is empty."

    def handle(self, *_args: Any, **_options: Any) -> None:
        self._announce("Migrating the database")
        _migrate()
        self._announce("Loading the data, if there is none")
        call_command("load_db", if_empty=True, stdout=self.stdout)
        if settings.LAB.LAB_WORKBENCH is Switch.ON:
            call_command("load_db", workbench=True, if_empty=True, stdout=self.stdout)

    def _announce(self, what: str) -> None:
        self.stdout.write(what)
        self.stdout.flush()


def _migrate() -> None:
    try:
        call_command("migrate", interactive=False, verbosity=0, skip_checks=False)
    except DatabaseError as error:
        reason = str(error).strip().splitlines()[0]
        raise CommandError(
            f"A migration failed: {reason}. The earlier ones stay applied, and no data was loaded."
        ) from error
