"""Reset the database to load_db's data, so that every cell starts the same."""

from collections.abc import Iterator

from tenacity import retry, retry_if_exception_message, stop_after_attempt

from load_lab.console import step
from load_lab.errors import LabError
from load_lab.paths import lab_file
from load_lab.settings import Settings
from load_lab.stack.engine import Engine
from load_lab.stack.reference import DATABASE, NEW_VERSIONS, ROLE

TEMPLATE = f"{DATABASE}_pristine"


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
    engine.sql(DATABASE, *NEW_VERSIONS, "CHECKPOINT")


def copy_database(engine: Engine, source: str, target: str) -> None:
    """Replace `target` by a copy of `source`.

    Whenever the lab is killed, `target` is whole: the copy has another name until it is complete.
    backend/ops/roles.py removes an unfinished one.
    """
    copy, replaced = f"{target}_copy", f"{target}_replaced"
    drop_databases(engine, replaced)
    # FILE_COPY copies the files between two checkpoints; the default also writes each page to the
    # WAL. For a million posts (248 MB): 1.5 to 2.3 s instead of 4 to 5 s.
    create = f"CREATE DATABASE {copy} TEMPLATE {source} OWNER {ROLE} STRATEGY FILE_COPY"
    _run_without_connections(engine, [source], _drop(copy), create)
    rename_databases(engine, (target, replaced), (copy, target))
    drop_databases(engine, replaced)


def rename_databases(engine: Engine, *names: tuple[str, str]) -> None:
    """Rename databases from old to new names in one transaction; those that do not exist are
    skipped.
    """
    existing = set(engine.sql("postgres", "SELECT datname FROM pg_database"))
    renames = []
    for old, new in names:
        if old in existing:
            existing = existing - {old} | {new}
            renames.append(f"ALTER DATABASE {old} RENAME TO {new}")
    _run_without_connections(engine, [old for old, _ in names], "; ".join(renames))


def drop_databases(engine: Engine, *names: str) -> None:
    engine.sql("postgres", *map(_drop, names))


def _drop(name: str) -> str:
    return f"DROP DATABASE IF EXISTS {name} WITH (FORCE)"


# The last two: the copy that a killed `lab` began, and that Postgres still finishes.
_CONFLICT = ".*(accessed by other users|already exists|duplicate key)"


@retry(stop=stop_after_attempt(5), retry=retry_if_exception_message(match=_CONFLICT), reraise=True)
def _run_without_connections(engine: Engine, databases: list[str], *statements: str) -> None:
    """Run statements that Postgres rejects while a client is connected to one of the databases.

    A client may connect again before the statement locks the database, so they are repeated.
    ALLOW_CONNECTIONS false would prevent it, but would stay if the lab was killed.
    """
    names = ", ".join(f"'{name}'" for name in databases)
    terminate = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname IN ({names})"  # noqa: S608
    engine.sql("postgres", terminate, *statements)


def _signature(settings: Settings) -> str:
    """Return what the data depends on: sizes, seed, LAB_WORKBENCH and the migrations."""
    names = [name for name in settings.as_env() if name.startswith("LAB_DATA_")]
    sizes = [f"{name}={settings.as_env()[name]}" for name in ("LAB_WORKBENCH", *names)]
    return " ".join([*sizes, *_migrations()])


def _migrations() -> Iterator[str]:
    for path in sorted((lab_file("backend")).glob("*/migrations/0*.py")):
        yield f"{path.parts[-3]}.{path.stem}"
