"""A connection to the stack's Postgres as its superuser."""

import psycopg

from load_lab.settings import LOOPBACK, Settings


def connect(settings: Settings, password: str, database: str = "postgres") -> psycopg.Connection:
    """Return the connection.

    Raises:
        psycopg.Error: Postgres does not accept it.
    """
    return psycopg.connect(
        host=LOOPBACK,
        port=settings.LAB_POSTGRES_PORT,
        user="postgres",
        dbname=database,
        password=password,
        connect_timeout=2,
        # Another program that listens on the port must not receive the password.
        require_auth="scram-sha-256",
    )
