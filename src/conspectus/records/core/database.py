"""Databases: addresses, transactions and migration."""

import importlib
import time
from collections.abc import Callable, Set
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol, TypeVar

from sqlalchemy import Connection, Engine, inspect, text

from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput, MissingExtra, StorageError, StorageTooNew, StorageTooOld
from conspectus.records.core.inline import InlineReads
from conspectus.records.core.schema import UNFINISHED, make_tables, version_of
from conspectus.records.core.sqlite import SqliteDatabase
from conspectus.records.tables.core import VERSION, metadata

Result = TypeVar("Result")

MAX_ATTEMPTS = 5
PAUSE_SECONDS = 0.02
MAX_READERS = 4
"""Maximum number of concurrent reads of a file."""
SCHEMES = ("postgresql://", "postgres://")


class Database(Protocol):
    """The differences between databases that can store records.

    `readers` and `writers` are the maximum numbers of concurrent transactions of this process.
    """

    name: str
    readers: int
    writers: int
    has_partial_locks: bool
    """Whether a transaction can lock a part of the database, such as a collection."""
    reading: Engine
    """Transactions that are snapshots."""
    writing: Engine
    """Snapshots that also hold the write lock: they are serialized among all processes."""
    autocommitted: Engine
    """Statements in autocommit mode, which do not wait for writers if the database allows it."""
    single: Engine
    """Reads of one statement."""
    inline: InlineReads | None
    """Reads without a thread, if the database allows them."""
    session: int | None
    """The number of a lock that the direct connections of this process hold; None in a file."""

    def with_locks(self, locks: Set[str | None]) -> Engine:
        """Return transactions that hold these locks, or with None the write lock, in all processes.

        Holders of other locks may write at the same time, if the database allows it.
        """

    def prepare(self) -> None:
        """Prepare the database before the first transaction."""

    def begin_migration(self) -> AbstractContextManager[Connection]:
        """Begin a transaction during which no other process migrates."""

    def convert_errors(self) -> AbstractContextManager[None]:
        """Convert errors of database and driver to ours."""

    def problems(self, connection: Connection) -> list[str]:
        """Return the problems that the database itself finds."""

    def erase(self, *, waits: bool = True) -> None:
        """Erase deleted content from all files. Raises StorageBusy, soon unless it waits."""

    def close(self) -> None:
        """Close every connection."""

    def may_repeat(self, fault: StorageError, *, attempt: int, undone: bool) -> bool:
        """Return whether a transaction that failed with this error may succeed when it is repeated.

        `undone` means that nothing of it can be stored: it was not committed, or only read.
        """

    def to_caller_error(self, fault: StorageError, *, undone: bool) -> StorageError:
        """Return the error for the caller, with `undone` as above."""


def transact(database: Database, engine: Engine, work: Callable[[Connection], Result]) -> Result:
    """Run a function in one transaction, and again if the database rolled it back because of a conflict."""
    for attempt in range(1, MAX_ATTEMPTS + 1):
        undone = True
        try:
            with database.convert_errors(), engine.begin() as connection:
                undone = engine is not database.autocommitted
                result = work(connection)
                # From here on, only the commit can fail; reads have nothing to commit.
                undone = engine in {database.reading, database.single}
            return result
        except StorageError as fault:
            if attempt == MAX_ATTEMPTS or not database.may_repeat(fault, attempt=attempt, undone=undone):
                raise database.to_caller_error(fault, undone=undone) from fault.__cause__
            # The conflicting transaction needs a moment to finish first.
            time.sleep(PAUSE_SECONDS * (attempt - 1))
    raise AssertionError("the last attempt returns or raises")


def run_guarded(database: Database, work: Callable[[], Result]) -> Result:
    """Run a function, and convert errors of the database to ours."""
    with database.convert_errors():
        return work()


@dataclass(frozen=True, slots=True)
class DatabaseAccess:
    """Timeouts for locks and servers, and the maximum number of connections to a server.

    With `row_security`, the server restricts reads of a person to rows that the person may see.
    """

    busy_seconds: float = 30.0
    connections: int = 8
    row_security: bool = False


def is_server(address: str) -> bool:
    """Return whether an address names a database server, and not a file."""
    return address.startswith(SCHEMES)


def database_at(address: str, access: DatabaseAccess) -> Database:
    """Return the database of a path or a `postgresql://` URL. Raises InvalidInput or MissingExtra."""
    if not is_server(address):
        if "://" in address:
            raise InvalidInput("path", "must be the path of a folder, or begin with postgresql://")
        if access.row_security:
            raise InvalidInput("row_security", "needs records in PostgreSQL; turn it off for a folder")
        return SqliteDatabase(Path(address), busy_seconds=access.busy_seconds, readers=MAX_READERS)
    try:
        postgres = importlib.import_module("conspectus.records.core.postgres")
    except ImportError as fault:
        raise MissingExtra("postgresql", fault.name or "psycopg") from fault
    database: Database = postgres.PostgresDatabase(address, access.busy_seconds, access.connections)
    return database


def migrate_if_needed(database: Database) -> None:
    """Migrate to the newest version, unless another process has done so.

    Raises StorageTooNew or StorageTooOld.
    """
    with database.convert_errors():
        database.prepare()
    if transact(database, database.reading, version_of) != VERSION:
        with database.convert_errors():
            _migrate(database)


def bytes_of_database(connection: Connection) -> int:
    """Return the size of the whole database on a server, including indexes."""
    return int(connection.execute(text("SELECT pg_database_size(current_database())")).scalar_one())


def _migrate(database: Database) -> None:
    """Migrate under a lock, unless another process did so while this one waited for it."""
    with database.begin_migration() as connection:
        stored = version_of(connection)
        if stored == VERSION:
            return
        if stored == UNFINISHED:
            raise StorageError(
                f"{database.name}: a transfer into it is unfinished; run it again, then open the store"
            )
        if stored is not None and stored > VERSION:
            raise StorageTooNew(database.name, stored)
        if stored is None:
            foreign_tables = set(inspect(connection).get_table_names()) & set(metadata.tables)
            if foreign_tables:
                raise StorageError(
                    f"{database.name} has a table {min(foreign_tables)} of another program;"
                    " use a separate database"
                )
            make_tables(connection)
            return
        # Alembic is slow to import, and needed once per version.
        migrations = importlib.import_module("conspectus.records.migrations")
        if stored == migrations.FIRST_VERSION and not migrations.has_first_schema(connection):
            raise StorageTooOld(database.name)
        migrations.upgrade(connection, version=VERSION)
