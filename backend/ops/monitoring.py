"""What Postgres' exporter needs there: a role that may read every statistic and change nothing.

python -m ops.monitoring

Both engines run it before the backend starts, so that data made by an older version gets it too.
"""

import psycopg
from config import env
from psycopg import sql

ROLE = sql.Identifier("lab_monitor")
EXTENSION = "CREATE EXTENSION IF NOT EXISTS pg_stat_statements"


def prepare(connection: psycopg.Connection) -> None:
    """Make role and extension in the database `postgres`; what is there is brought up to date."""
    connection.execute(EXTENSION)
    if not connection.execute("SELECT 1 FROM pg_roles WHERE rolname = 'lab_monitor'").fetchone():
        connection.execute(sql.SQL("CREATE ROLE {}").format(ROLE))
    for statement in (
        # Sees the statistics of every role and database, and no row of theirs.
        sql.SQL("GRANT pg_monitor TO {}"),
        # A query that takes longer than a scrape may take is of no use to it.
        sql.SQL("ALTER ROLE {} SET statement_timeout = '3s'"),
    ):
        connection.execute(statement.format(ROLE))
    password = sql.Literal(env.secret("monitor_password"))
    connection.execute(sql.SQL("ALTER ROLE {} LOGIN PASSWORD {}").format(ROLE, password))


def main() -> None:
    """Log in as the superuser, whose password is the backend's too."""
    with psycopg.connect(
        host=env.text("PGHOST"),
        port=env.text("PGPORT"),
        user="postgres",
        dbname="postgres",
        password=env.secret("postgres_password"),
        connect_timeout=10,
    ) as connection:
        prepare(connection)


if __name__ == "__main__":
    main()
