-- Try to take the key's lock, until the end of the transaction, and look up the stored response. A
-- stored response is valid even without the lock, which another repeat may have.
SELECT pg_try_advisory_xact_lock(%(lock)s::bigint), stored.fingerprint, stored.status, stored.body
FROM (SELECT) one_row LEFT JOIN idempotency_storedanswer stored
  ON stored.key = %(key)s::text AND stored.created_at > now() - %(lifetime)s::interval
