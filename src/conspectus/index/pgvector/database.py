"""The database of the pgvector index: transactions in threads, and the extension."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeAlias, TypeVar

from psycopg import Cursor, errors
from sqlalchemy import Connection

from conspectus.errors import ExtensionMissing

Result = TypeVar("Result")
Rows: TypeAlias = Cursor[tuple[Any, ...]]
Run: TypeAlias = Callable[[Callable[[Connection], Any]], Awaitable[Any]]
"""Runs a function of a connection in a transaction, possibly one that is already open."""

OLDEST = (0, 8)
_VERSION = """
SELECT e.extversion, n.nspname = ANY (current_schemas(true)), quote_ident(n.nspname)
FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector'
"""
_STATEMENT = "run CREATE EXTENSION vector in this database as a superuser"
_NOT_INSTALLED = (errors.FeatureNotSupported, errors.UndefinedFile)


class Database(Protocol):
    """Transactions in threads, on the connection pool of the records."""

    async def read(self, work: Callable[[Connection], Result]) -> Result:
        """Run the function in a snapshot of the data (repeatable read), which several reads may share."""
        ...

    def renew(self) -> None:
        """Renew the snapshot, so that the next read sees newer data."""

    async def write(self, work: Callable[[Connection], Result]) -> Result:
        """Run the function in a write transaction. It does not wait for other writers."""
        ...

    def open_long_transaction(self) -> AbstractAsyncContextManager[Run]:
        """Open a write transaction over several steps, committed at the end of the block.

        Cancelling a step cancels its statement.
        """
        ...


def rows_of(connection: Connection) -> Rows:
    """Return a cursor in binary format."""
    driver: Any = connection.connection.driver_connection
    cursor: Rows = driver.cursor(binary=True)
    return cursor


def require_vectors(cursor: Rows) -> None:
    """Create the extension if it is missing. Raises ExtensionMissing with the statement for the operator."""
    cursor.execute(_VERSION)
    if not (extension := cursor.fetchone()):
        try:
            cursor.execute("CREATE EXTENSION IF NOT EXISTS vector")
        except errors.InsufficientPrivilege as fault:
            raise ExtensionMissing(f"the database has no pgvector; {_STATEMENT}") from fault
        except _NOT_INSTALLED as fault:
            package = f"postgresql-{cursor.connection.info.server_version // 10_000}-pgvector"
            raise ExtensionMissing(
                f"the database server has no pgvector; install it there (Debian, Ubuntu: {package}), then"
                f" {_STATEMENT}"
            ) from fault
        cursor.execute(_VERSION)
        extension = cursor.fetchone() or ("0.0", True, "")
    version, is_found, schema = extension
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST:
        raise ExtensionMissing(f"pgvector {version} is too old, 0.8 is needed: ALTER EXTENSION vector UPDATE")
    if not is_found:
        raise ExtensionMissing(
            f"pgvector is in the schema {schema}, which is not in the search path; add it there after the"
            " store's own (ALTER ROLE … SET search_path) and let this user use it (GRANT USAGE ON SCHEMA)"
        )
