-- Takes the key's lock, held to the end of the transaction, and looks the answer up. One that is there
-- holds whether the lock was free or not: another repeat may have it.
SELECT pg_try_advisory_xact_lock(%(lock)s::bigint), stored.fingerprint, stored.status, stored.body
FROM (SELECT) here LEFT JOIN idempotency_storedanswer stored
  ON stored.key = %(key)s::text AND stored.created_at > now() - %(lifetime)s::interval
