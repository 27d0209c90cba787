"""A copy of the customers' ids beside each booking, for hotel detail.

A page has thousands of bookings, and to look each up in the table of links is most of its work: by
an index that grows a level with the data, on pages all over it. Postgres keeps the copy itself, so
that nobody who writes to the links need know of it; the models have no such field, so whoever reads
by them pays nothing for it.
"""

from django.db import migrations

_BOOKING, _LINK = "hotels_booking", "hotels_booking_customers"

# Nobody changes a link between the copy's making and the triggers that keep it; and what the API's
# timeouts are for is no measure for this.
_ALONE = f"SET LOCAL statement_timeout = 0; LOCK TABLE {_BOOKING}, {_LINK} IN SHARE ROW EXCLUSIVE MODE"
_COLUMN = f"ALTER TABLE {_BOOKING} ADD COLUMN customer_ids uuid[] NOT NULL DEFAULT '{{}}'"
_NOW = f"ARRAY(SELECT customer_id FROM {_LINK} WHERE booking_id = {_BOOKING}.id ORDER BY customer_id)"
_FILL = f"UPDATE {_BOOKING} SET customer_ids = {_NOW}"

# Once for each statement, however many links it changes; where the copy is right already, nothing
# is locked or written. Two statements: who waits for a row sees afterwards, in the second one's
# snapshot, the links of whom it waited for. In one order, so that two never wait for each other.
_WRONG = f"id IN (SELECT booking_id FROM changed) AND customer_ids <> {_NOW}"
_KEEP = f"""
CREATE FUNCTION {_BOOKING}_keep_customer_ids() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM {_BOOKING} WHERE {_WRONG} ORDER BY id FOR NO KEY UPDATE;
    IF FOUND THEN
        UPDATE {_BOOKING} SET customer_ids = {_NOW} WHERE {_WRONG};
    END IF;
    RETURN NULL;
END
$$
"""
_EMPTY = f"""
CREATE FUNCTION {_BOOKING}_empty_customer_ids() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE {_BOOKING} SET customer_ids = '{{}}' WHERE customer_ids <> '{{}}';
    RETURN NULL;
END
$$
"""


def _trigger(event: str, rows: str = "") -> migrations.RunSQL:
    name = f"{_LINK}_{event}_{rows}".lower().rstrip("_")
    changed = f"REFERENCING {rows} TABLE AS changed" if rows else ""
    function = f"{_BOOKING}_{'keep' if rows else 'empty'}_customer_ids()"
    return migrations.RunSQL(
        f"CREATE TRIGGER {name} AFTER {event} ON {_LINK} {changed} "
        f"FOR EACH STATEMENT EXECUTE FUNCTION {function}",
        f"DROP TRIGGER {name} ON {_LINK}",
    )


class Migration(migrations.Migration):
    dependencies = [("hotels", "0002_versions_start_at_their_time")]

    operations = [
        migrations.RunSQL(_ALONE, migrations.RunSQL.noop),
        migrations.RunSQL(_COLUMN, f"ALTER TABLE {_BOOKING} DROP COLUMN customer_ids"),
        migrations.RunSQL(_FILL, migrations.RunSQL.noop),
        migrations.RunSQL(_KEEP, f"DROP FUNCTION {_BOOKING}_keep_customer_ids()"),
        migrations.RunSQL(_EMPTY, f"DROP FUNCTION {_BOOKING}_empty_customer_ids()"),
        _trigger("INSERT", "NEW"),
        _trigger("UPDATE", "NEW"),
        # What was moved to another booking is missing from this one.
        _trigger("UPDATE", "OLD"),
        _trigger("DELETE", "OLD"),
        _trigger("TRUNCATE"),
    ]
