"""Postgres's roles, and the application's database.

Both engines prepare them (`manage.py prepare_db`) before the backend starts, so that data of an
older version gets them too. The application's role `hotel` owns its database. It is not a
superuser, so that it can't use the connections reserved for repair. `lab_monitor` can read every
statistic and change nothing.
"""

import psycopg
from config import env
from psycopg import sql

EXTENSION = "CREATE EXTENSION IF NOT EXISTS pg_stat_statements"


def connect() -> psycopg.Connection:
    """Log in as the superuser, whose password no application server has."""
    return psycopg.connect(
        host=env.text("PGHOST"),
        port=env.text("PGPORT"),
        user="postgres",
        dbname="postgres",
        password=env.secret("postgres_password"),
        connect_timeout=10,
        require_auth="scram-sha-256",
        autocommit=True,
    )


def prepare(connection: psycopg.Connection) -> None:
    """Create what is missing in the database `postgres`, and update what exists."""
    _make_role(connection, "hotel", env.secret("hotel_password"))
    _repair_databases(connection)
    if not connection.execute("SELECT 1 FROM pg_database WHERE datname = 'hotel'").fetchone():
        connection.execute("CREATE DATABASE hotel OWNER hotel")
    connection.execute(EXTENSION)
    _make_role(connection, "lab_monitor", env.secret("monitor_password"))
    # Can read the statistics of every role and database, but none of their rows.
    connection.execute("GRANT pg_monitor TO lab_monitor")
    # A query that takes longer than a scrape is useless for it.
    connection.execute("ALTER ROLE lab_monitor SET statement_timeout = '3s'")


def _repair_databases(connection: psycopg.Connection) -> None:
    """Repair what a killed `lab` left (load_lab/stack/database.py): databases that accept no
    connections, as older versions made them while they copied, and unfinished copies.
    """
    names = "SELECT quote_ident(datname) FROM pg_database WHERE datname ~ %s AND {}"
    closed = names.format("NOT datallowconn")
    for (name,) in connection.execute(closed, ["^hotel(_|$)"]).fetchall():
        connection.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
    scratch = names.format("datname <> 'hotel_pristine'")
    for (name,) in connection.execute(scratch, ["^hotel_"]).fetchall():
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def _make_role(connection: psycopg.Connection, name: str, password: str) -> None:
    """Create or update a role, with a login.

    Only a hash of the password is sent: pg_stat_statements stores statements, and lab_monitor reads
    them.
    """
    if not connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [name]).fetchone():
        connection.execute(sql.SQL("CREATE ROLE {}").format(sql.Identifier(name)))
    secret = connection.pgconn.encrypt_password(password.encode(), name.encode(), b"scram-sha-256")
    alter = sql.SQL("ALTER ROLE {} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD {}")
    connection.execute(alter.format(sql.Identifier(name), sql.Literal(secret.decode())))
