"""Jobs, their files, leases, idempotency and rate counters in SQL."""
