"""SECURITY.md's tables of secrets and containers match the configuration."""

import re

from config.secrets import NAMES, READERS

from tests.stack.test_compose_closed import CAPABILITIES, ROOT_USERS
from tests.support.security_page import PAGE


def _table(first):
    """Return the rows of the table whose first column is named `first`."""
    (_, after) = PAGE.split(f"| {first} |", 1)
    lines = after.split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_every_secret_is_in_table():
    assert {row[0].strip("`") for row in _table("secret")} == set(NAMES)


def test_every_privileged_container_is_in_table_with_reason():
    rows = {row[0].strip("`"): row for row in _table("service")}
    assert {name for name, row in rows.items() if row[1] == "yes"} == ROOT_USERS
    capabilities = {name: set(re.findall(r"[A-Z_]{3,}", row[2])) for name, row in rows.items()}
    assert capabilities == CAPABILITIES
    assert all(len(row[3]) > 15 for row in rows.values())


def test_push_password_has_no_reader():
    """Only the setup itself has the password of the metrics ingress."""
    assert not [name for name, reader in READERS.items() if "push_password" in reader.names]
