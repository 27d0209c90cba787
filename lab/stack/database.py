"""The same start for every cell: the data as load_db makes it, and nothing kept anywhere."""

from collections.abc import Iterator

from lab.console import step
from lab.errors import LabError
from lab.paths import ROOT
from lab.settings import Settings
from lab.stack.engine import Engine

DATABASE = "hotel"
TEMPLATE = "hotel_pristine"

# A version that was seen with other bookings must not come again: an ETag of an earlier cell would
# be taken for the new page's.
_NEW_VERSIONS = "UPDATE hotels_hotel SET version = (extract(epoch FROM now()) * 1000000)::bigint"


def prepare_template(engine: Engine, settings: Settings) -> None:
    """Make the database that `restore` copies, unless it is there with these data.

    The stack runs with `settings`: without LAB_WORKBENCH it has no tables for the workbench's data.

    Raises:
        LabError: the data could not be loaded.
    """
    wanted = _signature(settings)
    said = f"SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = '{TEMPLATE}'"  # noqa: S608, E501
    if engine.sql("postgres", said) == [wanted]:
        return
    with step("Loading the data that every cell starts from"):
        _load_db(engine)
        if settings.LAB_WORKBENCH == "on":
            _load_db(engine, "--workbench")
        engine.sql(DATABASE, "VACUUM ANALYZE")
        copy_database(engine, DATABASE, TEMPLATE)
        engine.sql("postgres", f"COMMENT ON DATABASE {TEMPLATE} IS '{wanted}'")


def _load_db(engine: Engine, *which: str) -> None:
    done = engine.exec("backend", ["python", "manage.py", "load_db", "--reload", *which])
    if done.returncode:
        raise LabError(f"load_db failed: {done.stderr.strip()[-500:]}")


def restore(engine: Engine) -> None:
    """The database as the template has it; what was booked since is gone."""
    copy_database(engine, TEMPLATE, DATABASE)
    engine.sql(DATABASE, _NEW_VERSIONS, "ANALYZE hotels_hotel", "CHECKPOINT")


def copy_database(engine: Engine, source: str, target: str) -> None:
    """`target`, made anew as a copy. Postgres copies only what nobody is connected to.

    Nothing is dropped before it is clear that there is something to copy.
    """
    try:
        engine.sql(
            "postgres",
            f"ALTER DATABASE {source} ALLOW_CONNECTIONS false",
            f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{source}'",  # noqa: S608
            f"DROP DATABASE IF EXISTS {target} WITH (FORCE)",
            # Files are copied as they are, between two checkpoints, where the default writes each
            # page to the log as well: of a million posts (248 MB) 1.5 to 2.3 s instead of 4 to 5.
            f"CREATE DATABASE {target} TEMPLATE {source} OWNER hotel STRATEGY FILE_COPY",
        )
    finally:
        engine.sql("postgres", f"ALTER DATABASE {source} ALLOW_CONNECTIONS true")


def _signature(settings: Settings) -> str:
    """What the data depend on: sizes, seed, whether the workbench is there, the tables' shape."""
    names = [name for name in settings.as_env() if name.startswith("LAB_DATA_")]
    sizes = [f"{name}={settings.as_env()[name]}" for name in ("LAB_WORKBENCH", *names)]
    return " ".join([*sizes, *_migrations()])


def _migrations() -> Iterator[str]:
    for path in sorted((ROOT / "backend").glob("*/migrations/0*.py")):
        yield f"{path.parts[-3]}.{path.stem}"
