SELECT fingerprint, status, body FROM idempotency_storedanswer
WHERE key = %(key)s::text AND created_at > now() - %(lifetime)s::interval
