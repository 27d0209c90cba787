-- Store a response. Returns no row if the key has a response that has not expired. Each new response
-- deletes up to two expired ones, so the table does not grow. The DELETE comes last: transactions that
-- first delete other keys and then wait for their own could deadlock.
WITH stored AS (
    INSERT INTO idempotency_storedanswer AS old (key, fingerprint, status, body, created_at)
    VALUES (
        %(key)s::text, %(fingerprint)s::text, %(status)s::smallint, %(body)s::jsonb, now()
    )
    ON CONFLICT (key) DO UPDATE
    SET (fingerprint, status, body, created_at) =
        (excluded.fingerprint, excluded.status, excluded.body, excluded.created_at)
    WHERE old.created_at <= now() - %(lifetime)s::interval
    RETURNING key
), too_old AS MATERIALIZED (
    SELECT key FROM idempotency_storedanswer
    WHERE created_at <= now() - %(lifetime)s::interval AND key <> %(key)s::text
      AND EXISTS (SELECT FROM stored)
    ORDER BY created_at LIMIT 2 FOR UPDATE SKIP LOCKED
), removed AS (
    DELETE FROM idempotency_storedanswer WHERE key IN (SELECT key FROM too_old)
)
SELECT key FROM stored
