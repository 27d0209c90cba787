"""What makes the load of `lab bench`, where k6 would be the limit."""

from lab.stack.native.programs import require, version_of


def versions() -> dict[str, str]:
    """The version of each generator."""
    return {
        "wrk": version_of([str(require("wrk")), "-v"]),
        "pgbench": version_of([str(require("pgbench")), "--version"]),
    }
