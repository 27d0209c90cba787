"""Postgres' roles, and the application's database.

python -m ops.roles

Both engines run it before the backend starts, so that data made by an older version gets them too.
`hotel` is the application's: it owns its database and is no superuser, so that it can't use up the
connections reserved for repair. `lab_monitor` may read every statistic and change nothing.
"""

import sys

import psycopg
from config import env
from psycopg import sql

EXTENSION = "CREATE EXTENSION IF NOT EXISTS pg_stat_statements"


def prepare(connection: psycopg.Connection) -> None:
    """Make what is missing, in the database `postgres`; what is there is brought up to date."""
    connection.autocommit = True
    _make_role(connection, "hotel", env.secret("hotel_password"))
    if not connection.execute("SELECT 1 FROM pg_database WHERE datname = 'hotel'").fetchone():
        connection.execute("CREATE DATABASE hotel OWNER hotel")
    connection.execute(EXTENSION)
    _make_role(connection, "lab_monitor", env.secret("monitor_password"))
    # Sees the statistics of every role and database, and no row of theirs.
    connection.execute("GRANT pg_monitor TO lab_monitor")
    # A query that takes longer than a scrape may take is of no use to it.
    connection.execute("ALTER ROLE lab_monitor SET statement_timeout = '3s'")


def _make_role(connection: psycopg.Connection, name: str, password: str) -> None:
    """Postgres is told a hash: statements are kept in statistics, which lab_monitor reads."""
    if not connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [name]).fetchone():
        connection.execute(sql.SQL("CREATE ROLE {}").format(sql.Identifier(name)))
    secret = connection.pgconn.encrypt_password(password.encode(), name.encode(), b"scram-sha-256")
    alter = sql.SQL("ALTER ROLE {} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD {}")
    connection.execute(alter.format(sql.Identifier(name), sql.Literal(secret.decode())))


def main() -> None:
    """Log in as the superuser, whose password no server of the application has."""
    try:
        with psycopg.connect(
            host=env.text("PGHOST"),
            port=env.text("PGPORT"),
            user="postgres",
            dbname="postgres",
            password=env.secret("postgres_password"),
            connect_timeout=10,
            require_auth="scram-sha-256",
        ) as connection:
            prepare(connection)
    except psycopg.OperationalError as error:
        sys.exit(f"error: Postgres's roles can't be made: {str(error).strip()}")


if __name__ == "__main__":
    main()
