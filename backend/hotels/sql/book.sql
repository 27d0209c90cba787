-- Create a booking. `suite` has no row if a check fails, `booking` none if the nights are already
-- booked. The statement raises no error, so a rejected booking aborts no transaction, needs no
-- savepoint, and changes no version. `suite` is locked before the INSERT, which then sees what was
-- committed while it waited, since an exclusion constraint also checks rows newer than the statement's
-- snapshot. So does the UPDATE, which uses the current version of the row. `links` can reference the
-- booking that the same statement inserts, since Django's foreign keys are checked at the end of the
-- transaction.
WITH known AS MATERIALIZED (
    SELECT id FROM hotels_customer WHERE id = ANY(%(customers)s::uuid[])
), suite AS MATERIALIZED (
    SELECT id, hotel_id FROM hotels_suite
    WHERE id = %(suite)s::uuid
      AND capacity >= cardinality(%(customers)s::uuid[])
      AND (SELECT count(*) FROM known) = cardinality(%(customers)s::uuid[])
    FOR NO KEY UPDATE
), booking AS (
    INSERT INTO hotels_booking (id, suite_id, check_in, check_out, created_at, customer_ids)
    SELECT %(id)s::uuid, id, %(check_in)s::date, %(check_out)s::date, %(created_at)s::timestamptz,
           ARRAY(SELECT id FROM known ORDER BY id)
    FROM suite
    ON CONFLICT ON CONSTRAINT booking_nights_are_free DO NOTHING
    RETURNING id, suite_id
), links AS (
    INSERT INTO hotels_booking_customers (booking_id, customer_id)
    SELECT booking.id, known.id FROM booking CROSS JOIN known
), raised AS (
    UPDATE hotels_suite SET version = version + 1
    FROM booking WHERE hotels_suite.id = booking.suite_id
)
SELECT booking.id, suite.hotel_id FROM suite LEFT JOIN booking ON true
