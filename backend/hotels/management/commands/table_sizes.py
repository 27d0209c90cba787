"""Print the tables' sizes."""

import json
from typing import Any

from config.postgres import prepared
from django.core.management.base import CommandParser
from django.db import connection
from ops.commands import DatabaseCommand

_COLUMNS = ("table", "rows", "table_bytes", "index_bytes", "total_bytes")

_SIZES = prepared.statement("hotels", "table_sizes")


class Command(DatabaseCommand):
    help = "Print the size of each table and its indexes, largest first."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="Print one JSON document.")

    def handle(self, *_args: Any, **options: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute(_SIZES)
            sizes = [dict(zip(_COLUMNS, row, strict=True)) for row in cursor.fetchall()]
        if options["json"]:
            self.stdout.write(json.dumps({"tables": sizes}, indent=2))
        else:
            self.stdout.write(_as_text(sizes))


def _as_text(sizes: list[dict[str, Any]]) -> str:
    head = f"{'table':<32}{'rows':>12}{'table':>12}{'indexes':>12}{'total':>12}"
    lines = [
        f"{size['table']:<32}{size['rows']:>12,}"
        + "".join(f"{_readable(size[name]):>12}" for name in _COLUMNS[2:])
        for size in sizes
    ]
    return "\n".join([head, *lines])


def _readable(count: int) -> str:
    """Return 1536 as 1.5 KB, in powers of 1024 like Postgres's pg_size_pretty."""
    size = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TB"
