"""Reset the database to load_db's data, so that every cell starts the same."""

from collections.abc import Iterator

from lab.console import step
from lab.errors import LabError
from lab.paths import ROOT
from lab.settings import Settings
from lab.stack.engine import Engine

DATABASE = "hotel"
TEMPLATE = "hotel_pristine"

# A hotel's version must not repeat with other bookings: an ETag of an earlier cell would match the
# new page.
_NEW_VERSIONS = "UPDATE hotels_hotel SET version = (extract(epoch FROM now()) * 1000000)::bigint"


def prepare_template(engine: Engine, settings: Settings) -> None:
    """Create the database that `restore` copies, unless it exists with the same data.

    The stack runs with `settings`: without LAB_WORKBENCH it has no tables for the workbench's data.

    Raises:
        LabError: the data could not be loaded.
    """
    signature = _signature(settings)
    query = f"SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = '{TEMPLATE}'"  # noqa: S608, E501
    if engine.sql("postgres", query) == [signature]:
        return
    with step("Loading the data that every cell starts from"):
        _load_db(engine)
        if settings.LAB_WORKBENCH == "on":
            _load_db(engine, "--workbench")
        engine.sql(DATABASE, "VACUUM ANALYZE")
        copy_database(engine, DATABASE, TEMPLATE)
        engine.sql("postgres", f"COMMENT ON DATABASE {TEMPLATE} IS '{signature}'")


def _load_db(engine: Engine, *flags: str) -> None:
    result = engine.exec("backend", ["python", "manage.py", "load_db", "--reload", *flags])
    if result.returncode:
        raise LabError(f"load_db failed: {result.stderr.strip()[-500:]}")


def restore(engine: Engine) -> None:
    """Reset the database to the template; bookings since then are lost."""
    copy_database(engine, TEMPLATE, DATABASE)
    engine.sql(DATABASE, _NEW_VERSIONS, "ANALYZE hotels_hotel", "CHECKPOINT")


def copy_database(engine: Engine, source: str, target: str) -> None:
    """Create `target` anew as a copy of `source`. Postgres copies only databases without
    connections.

    `target` is dropped only after `source` is known to exist.
    """
    try:
        engine.sql(
            "postgres",
            f"ALTER DATABASE {source} ALLOW_CONNECTIONS false",
            f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{source}'",  # noqa: S608
            f"DROP DATABASE IF EXISTS {target} WITH (FORCE)",
            # FILE_COPY copies the files between two checkpoints; the default also writes each page
            # to the WAL. For a million posts (248 MB): 1.5 to 2.3 s instead of 4 to 5 s.
            f"CREATE DATABASE {target} TEMPLATE {source} OWNER hotel STRATEGY FILE_COPY",
        )
    finally:
        engine.sql("postgres", f"ALTER DATABASE {source} ALLOW_CONNECTIONS true")


def _signature(settings: Settings) -> str:
    """Return what the data depends on: sizes, seed, LAB_WORKBENCH and the migrations."""
    names = [name for name in settings.as_env() if name.startswith("LAB_DATA_")]
    sizes = [f"{name}={settings.as_env()[name]}" for name in ("LAB_WORKBENCH", *names)]
    return " ".join([*sizes, *_migrations()])


def _migrations() -> Iterator[str]:
    for path in sorted((ROOT / "backend").glob("*/migrations/0*.py")):
        yield f"{path.parts[-3]}.{path.stem}"
