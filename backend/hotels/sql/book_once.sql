-- Create a booking (book.sql), and store the response of its Idempotency-Key: one round trip instead of
-- five. It books only if it gets the key's lock and the key has no response. It may miss a response
-- that was stored after its snapshot: then the key exists already, Postgres rejects the second one, and
-- everything is rolled back. Expired responses are deleted as in idempotency/sql/store.sql.
WITH claim AS MATERIALIZED (
    SELECT pg_try_advisory_xact_lock(%(lock)s::bigint)
       AND NOT EXISTS (SELECT FROM idempotency_storedanswer WHERE key = %(key)s::text) AS ours
), known AS MATERIALIZED (
    SELECT id FROM hotels_customer WHERE id = ANY(%(customers)s::uuid[])
), suite AS MATERIALIZED (
    SELECT id, hotel_id FROM hotels_suite
    WHERE id = %(suite)s::uuid
      AND capacity >= cardinality(%(customers)s::uuid[])
      AND (SELECT count(*) FROM known) = cardinality(%(customers)s::uuid[])
      AND (SELECT ours FROM claim)
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
), stored AS (
    INSERT INTO idempotency_storedanswer (key, fingerprint, status, body, created_at)
    SELECT %(key)s::text, %(fingerprint)s::text, %(status)s::smallint, %(body)s::jsonb, now()
    FROM booking
    RETURNING key
), too_old AS MATERIALIZED (
    SELECT key FROM idempotency_storedanswer
    WHERE created_at <= now() - %(lifetime)s::interval AND key <> %(key)s::text
      AND EXISTS (SELECT FROM stored)
    ORDER BY created_at LIMIT 2 FOR UPDATE SKIP LOCKED
), removed AS (
    DELETE FROM idempotency_storedanswer WHERE key IN (SELECT key FROM too_old)
)
SELECT suite.hotel_id FROM suite JOIN booking ON true
