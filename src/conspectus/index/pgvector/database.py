"""What the index needs of a database: transactions over the connections that the records use too."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeAlias, TypeVar

from psycopg import Cursor, errors
from sqlalchemy import Connection

from conspectus.errors import StorageError

Result = TypeVar("Result")
Rows: TypeAlias = Cursor[tuple[Any, ...]]
Run: TypeAlias = Callable[[Callable[[Connection], Any]], Awaitable[Any]]
"""Runs a function of a connection in a transaction that others before it may have begun."""

OLDEST = (0, 8)
_VERSION = """
SELECT e.extversion, n.nspname = ANY (current_schemas(true)), quote_ident(n.nspname)
FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector'
"""
_LINE = "have someone who may run: CREATE EXTENSION vector"
_REFUSED = (errors.InsufficientPrivilege, errors.FeatureNotSupported, errors.UndefinedFile)


class Database(Protocol):
    """Transactions in threads, on the connections that the records use too."""

    async def read(self, work: Callable[[Connection], Result]) -> Result:
        """Run with one unchanging view of the data."""
        ...

    async def write(self, work: Callable[[Connection], Result]) -> Result:
        """Run in a transaction that may change what the index owns; it waits for no writer of records."""
        ...

    def lasting(self) -> AbstractAsyncContextManager[Run]:
        """One such transaction over many steps, committed at the end of the block.

        Who stops waiting for a step stops the step, too.
        """
        ...


def rows_of(connection: Connection) -> Rows:
    """A cursor that sends and takes numbers as they are, not as text."""
    driver: Any = connection.connection.driver_connection
    cursor: Rows = driver.cursor(binary=True)
    return cursor


def require_vectors(cursor: Rows) -> None:
    """Have the extension in the database. Raises StorageError with the line that an operator has to run."""
    cursor.execute(_VERSION)
    if not (found := cursor.fetchone()):
        try:
            cursor.execute("CREATE EXTENSION IF NOT EXISTS vector")
        except _REFUSED as fault:
            reason = str(fault).partition("\n")[0]
            raise StorageError(f"the database has no pgvector ({reason}); {_LINE}") from fault
        cursor.execute(_VERSION)
        found = cursor.fetchone() or ("0.0", True, "")
    version, is_found, schema = found
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST:
        raise StorageError(f"pgvector {version} is too old, 0.8 is needed: ALTER EXTENSION vector UPDATE")
    if not is_found:
        raise StorageError(
            f"pgvector is in the schema {schema}, which is not in the search path; add it there after the"
            " store's own (ALTER ROLE … SET search_path) and let this user use it (GRANT USAGE ON SCHEMA)"
        )
