"""Many rows at once: without indexes, which are built afterwards in a fraction of the time."""

from collections.abc import Iterator
from contextlib import contextmanager

from lab.console import step
from lab.stack.engine import Engine

# Of the constraints those that have or need an index: primary keys, unique, exclusion; and foreign
# keys, at the end, since they refer to the others.
_CONSTRAINTS = """
SELECT format({form}) FROM pg_constraint
WHERE conrelid = ANY('{{{tables}}}'::regclass[]) AND contype IN ('p', 'u', 'x', 'f')
ORDER BY contype = 'f', conname
"""
_NAMED = "conrelid::regclass, conname"
_ADD = f"'ALTER TABLE %s ADD CONSTRAINT %I %s', {_NAMED}, pg_get_constraintdef(oid)"
_DROP = f"'ALTER TABLE %s DROP CONSTRAINT %I', {_NAMED}"
# What is left of the indexes when those are gone.
_INDEXES = """
SELECT {what} FROM pg_index
WHERE indrelid = ANY('{{{tables}}}'::regclass[]) ORDER BY indexrelid
"""
# Room to sort in. An index that is larger than what is said to be cached is built by way of files:
# the exclusion constraint's of 10 million bookings in 340 s instead of 130.
_BUILD = (
    "SET statement_timeout = 0",
    "SET maintenance_work_mem = '1GB'",
    "SET effective_cache_size = '8GB'",
)


@contextmanager
def without_indexes(engine: Engine, database: str, *tables: str) -> Iterator[None]:
    """`tables` without indexes and keys; as they were when the block ends well."""
    listed = ",".join(tables)

    def found(query: str, **parts: str) -> list[str]:
        return engine.sql(database, query.format(tables=listed, **parts))

    keys = found(_CONSTRAINTS, form=_ADD)
    for statement in reversed(found(_CONSTRAINTS, form=_DROP)):
        engine.sql(database, statement)
    indexes = found(_INDEXES, what="pg_get_indexdef(indexrelid)")
    for statement in found(_INDEXES, what="'DROP INDEX ' || indexrelid::regclass"):
        engine.sql(database, statement)
    yield
    for number, statement in enumerate([*indexes, *keys], 1):
        with step(f"Building the indexes again, {number}/{len(indexes) + len(keys)}"):
            engine.sql(database, *_BUILD, statement)
