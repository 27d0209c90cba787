-- A booking (book.sql), and the answer of its Idempotency-Key kept: one round trip instead of five. It
-- books where the key's lock is ours and the key has no answer. It need not see an answer that was
-- kept after its snapshot: the key is there twice then, which Postgres refuses, and all is undone.
-- Answers that are too old go as in idempotency/sql/store.sql.
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
