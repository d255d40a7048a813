"""Sessions of PostgreSQL: whether the process that holds one is alive."""

from typing import Final

from sqlalchemy import Connection, text

DIRECT: Final = "conspectus_direct"
"""The key of connections to PostgreSQL without a pooler. Each holds the lock of its process's session."""
_IS_ALIVE = text("""
SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted
AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
AND classid::bigint = :session >> 32 AND objid::bigint = :session & 4294967295)
""")


def is_session_alive(connection: Connection, session: int) -> bool:
    """Return whether any process has a connection to this database that holds the lock of the session."""
    return bool(connection.execute(_IS_ALIVE, {"session": session}).scalar_one())
