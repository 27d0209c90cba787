"""What Postgres's pg_stat_statements says of an app's statements."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import psycopg

NOT_LOADED = (
    "pg_stat_statements is not loaded: set shared_preload_libraries = 'pg_stat_statements', "
    "restart Postgres, and run CREATE EXTENSION pg_stat_statements in the app's database"
)
# In what the lab itself asks during a load.
_OF_THE_LAB = ("pg_stat_activity", "pg_stat_statements")
_QUERY = """
    SELECT queryid, datname, rolname, query, sum(calls)::bigint, sum(total_exec_time)
    FROM pg_stat_statements(%s) s
    JOIN pg_database d ON d.oid = s.dbid JOIN pg_roles r ON r.oid = s.userid
    GROUP BY 1, 2, 3, 4
"""


@dataclass(frozen=True)
class Statement:
    """A statement, its constants left out; `ms` is its execution time in all, its CPU time or
    less.
    """

    database: str
    role: str
    text: str
    calls: int
    ms: float


@dataclass(frozen=True)
class Statements:
    """All statements so far, by id, and who looked: an app's connection shows which are its own."""

    database: str
    role: str
    found: Mapping[tuple[int, str, str], Statement]

    def since(self, before: "Statements") -> list[Statement]:
        """Return what ran since then, the longest in all first."""
        rows = []
        for key, now in self.found.items():
            then = before.found.get(key)
            calls = now.calls - (then.calls if then else 0)
            ms = now.ms - (then.ms if then else 0.0)
            if calls > 0:
                rows.append(Statement(now.database, now.role, now.text, calls, ms))
        return sorted(rows, key=lambda each: -each.ms)

    def own_since(self, before: "Statements") -> list[Statement]:
        """Return what ran since then in the app's database, without the lab's; needs the texts."""
        return [
            each
            for each in self.since(before)
            if each.database == self.database and not any(name in each.text for name in _OF_THE_LAB)
        ]


def read_statements(
    connection: "psycopg.Connection[Any]", *, texts: bool = False
) -> Statements | None:
    """Return the statements of the whole server; None if the extension is not there, or not
    loaded.
    """
    import psycopg

    try:
        database, role = connection.execute("SELECT current_database(), current_user").fetchone()  # type: ignore[misc]
        rows = connection.execute(_QUERY, (texts,)).fetchall()
    except psycopg.Error:
        connection.rollback()
        return None
    connection.rollback()
    found = {
        (number, of, by): Statement(of, by, text or "", calls, ms)
        for number, of, by, text, calls, ms in rows
    }
    return Statements(database, role, found)


def own_times(looks: Sequence[Sequence[Statements | None]]) -> list[float | None]:
    """Return the milliseconds that the statements of each app took between two looks. Apps on one
    server are told apart by their databases, else by their roles; None if they can't be.
    """
    before, after = looks
    pairs = [(b, a) for b, a in zip(before, after, strict=True) if b and a]
    if len(pairs) < len(before):
        return [None] * len(before)
    places = [(each.database, each.role) for _, each in pairs]
    by_role = len({database for database, _ in places}) < len(places)
    if len(set(places)) < len(places):
        return [None] * len(places)
    return [
        sum(
            each.ms
            for each in now.since(then)
            if each.database == now.database and (each.role == now.role or not by_role)
        )
        for then, now in pairs
    ]
