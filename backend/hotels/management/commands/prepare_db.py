"""Make Postgres ready for the API: roles, database, tables, and data where there is none."""

from typing import Any

import psycopg
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from lab_settings.kinds import Switch
from ops import roles
from ops.commands import DatabaseCommand, reason


class Command(DatabaseCommand):
    """One process for all steps, since each start of Django takes a second of CPU time."""

    help = (
        "Create Postgres's roles and the database, migrate it, and load the data of the settings "
        "where a table is empty. Needs the superuser's password."
    )

    def handle(self, *_args: Any, **_options: Any) -> None:
        _prepare_roles()
        self._announce("Migrating the database")
        _migrate()
        self._announce("Loading the data, if there is none")
        call_command("load_db", if_empty=True, stdout=self.stdout)
        if settings.LAB.LAB_WORKBENCH is Switch.ON:
            call_command("load_db", workbench=True, if_empty=True, stdout=self.stdout)

    def _announce(self, what: str) -> None:
        self.stdout.write(what)
        self.stdout.flush()


def _prepare_roles() -> None:
    try:
        with roles.connect() as connection:
            roles.prepare(connection)
    except psycopg.Error as error:
        raise CommandError(f"Postgres's roles can't be created: {reason(error)}.") from error


def _migrate() -> None:
    """Check the project and migrate, if there is a migration to apply.

    The system checks load every route, in 0.4 s of CPU time.
    """
    try:
        executor = MigrationExecutor(connection)
        if executor.migration_plan(executor.loader.graph.leaf_nodes()):
            call_command("migrate", interactive=False, verbosity=0, skip_checks=False)
    except DatabaseError as error:
        raise CommandError(
            f"A migration failed: {reason(error)}. The earlier ones stay applied, and no data was "
            "loaded."
        ) from error
