"""Databases: which one an address names, its transactions and tables, and its newest version."""

import importlib
import time
from collections.abc import Callable, Set
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Protocol, TypeVar

from sqlalchemy import (
    Column,
    Connection,
    Engine,
    Index,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    create_mock_engine,
    insert,
    inspect,
    text,
)
from sqlalchemy.schema import CreateIndex, CreateTable, ExecutableDDLElement

from conspectus.errors import InvalidInput, MissingExtra, StorageError, StorageTooNew
from conspectus.records.core.inline import InlineReads
from conspectus.records.core.sqlite import SqliteDatabase
from conspectus.records.tables.core import VERSION, counters, metadata

Result = TypeVar("Result")

ATTEMPTS = 5
PAUSE_SECONDS = 0.02


class Database(Protocol):
    """The differences between the databases that can store records.

    Transactions of `reading` have one unchanging view; those of `writing` also have the write lock, so that
    they run one after the other, in all processes. `beside` is for statements that need neither: each is its
    own transaction, and does not wait for writers if the database allows that. Of this process, so many
    `readers` and `writers` work at once; `locks_parts` says whether a lock can be of less than all. `inline`
    reads without a thread, if the database allows that.
    """

    name: str
    readers: int
    writers: int
    locks_parts: bool
    reading: Engine
    writing: Engine
    autocommitted: Engine
    inline: InlineReads | None

    def writing_to(self, locks: Set[str | None]) -> Engine:
        """Transactions that hold these locks, or with None the write lock, against all other processes.

        Holders of other locks may write at the same time, if the database allows it.
        """
        ...

    def prepare(self) -> None:
        """Prepare the database before the first transaction."""
        ...

    def migrating(self) -> AbstractContextManager[Connection]:
        """A transaction that no other process migrates in."""
        ...

    def translated(self) -> AbstractContextManager[None]:
        """The one border where errors of database and driver become ours."""
        ...

    def problems(self, connection: Connection) -> list[str]:
        """The problems that the database itself finds."""
        ...

    def erase(self) -> None:
        """Leave nothing of what was deleted in any file. Raises StorageBusy."""
        ...

    def close(self) -> None:
        """Close every connection."""
        ...

    def may_repeat(self, fault: StorageError, *, attempt: int, undone: bool) -> bool:
        """Whether a transaction that failed so may succeed when it is run again.

        `undone` says that nothing of it can have stayed: it was not committed, or only read.
        """
        ...

    def reported(self, fault: StorageError, *, undone: bool) -> StorageError:
        """The error as the caller gets it, with `undone` as above."""
        ...


def transact(database: Database, engine: Engine, work: Callable[[Connection], Result]) -> Result:
    """Run with a connection in one transaction, and again where the database undid it for another's sake."""
    for attempt in range(1, ATTEMPTS + 1):
        undone = True
        try:
            with database.translated(), engine.begin() as connection:
                undone = engine is not database.autocommitted
                result = work(connection)
                undone = engine is database.reading
            return result
        except StorageError as fault:
            if attempt == ATTEMPTS or not database.may_repeat(fault, attempt=attempt, undone=undone):
                raise database.reported(fault, undone=undone) from fault.__cause__
            # The other one, for whose sake this was undone, needs a moment to go first.
            time.sleep(PAUSE_SECONDS * (attempt - 1))
    raise AssertionError("the last attempt returns or raises")


def guarded(database: Database, work: Callable[[], Result]) -> Result:
    """Run with the errors of the database as ours."""
    with database.translated():
        return work()


READERS = 4
SCHEMES = ("postgresql://", "postgres://")
UNFINISHED = "unfinished move"
"""In place of a version while a store is being filled from another."""


@dataclass(frozen=True, slots=True)
class DatabaseAccess:
    """How long to wait for a lock or a server, and how many connections to a server there may be.

    With `row_security` the server itself shows reads for a person only what the person may see.
    """

    busy_seconds: float = 30.0
    connections: int = 8
    row_security: bool = False


def is_server(address: str) -> bool:
    """Whether an address names a database server, and not a file."""
    return address.startswith(SCHEMES)


def database_at(address: str, access: DatabaseAccess) -> Database:
    """The database of a path or a `postgresql://` URL. Raises InvalidInput or MissingExtra."""
    if not is_server(address):
        if "://" in address:
            raise InvalidInput("path", "must be the path of a folder, or begin with postgresql://")
        if access.row_security:
            raise InvalidInput("row_security", "needs records in PostgreSQL; turn it off for a folder")
        return SqliteDatabase(Path(address), busy_seconds=access.busy_seconds, readers=READERS)
    try:
        postgres = importlib.import_module("conspectus.records.core.postgres")
    except ImportError as fault:
        raise MissingExtra("postgresql", fault.name or "psycopg") from fault
    database: Database = postgres.PostgresDatabase(address, access.busy_seconds, access.connections)
    return database


def bring_up_to_date(database: Database) -> None:
    """Migrate to the newest version, if no other process has done so. Raises StorageTooNew."""
    guarded(database, database.prepare)
    if transact(database, database.reading, version_of) != VERSION:
        guarded(database, lambda: _migrate(database))


def version_of(connection: Connection) -> str | None:
    """The version of the records that a connection leads to; None where there are none."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    stored: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return stored


def bytes_of_database(connection: Connection) -> int:
    """The size of the whole database on a server, indexes included."""
    return int(connection.execute(text("SELECT pg_database_size(current_database())")).scalar_one())


def _require_room(connection: Connection, name: str) -> None:
    """Raise StorageError where something else has tables that are called as ours are."""
    if taken := sorted(set(inspect(connection).get_table_names()) & set(metadata.tables)):
        raise StorageError(f"{name} has a table {taken[0]} of another program; use a separate database")


def _migrate(database: Database) -> None:
    """Under a lock, unless another process did it while this one waited for it."""
    with database.migrating() as connection:
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
            _require_room(connection, database.name)
            make_tables(connection)
            return
        # Alembic takes longer to import than everything else here, and is needed once per version.
        migrate = importlib.import_module("conspectus.records.core.migrate")
        migrate.upgrade(connection, version=VERSION)


FIRST = {"collection": "", "value": 0, "end": 2**63 - 1}
COUNTED = ("change", "chunk", "document", "alert_event", "graph_node", "graph_edge", "graph_event")

history = Table(
    "alembic_version",
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
"""The place where Alembic stores the version of a database."""


def make_tables(connection: Connection) -> None:
    """Make every table and its first rows inside the connection's open transaction."""
    for statement in statements(connection.dialect.name):
        connection.exec_driver_sql(statement)
    connection.execute(insert(counters), [{"name": name, **FIRST} for name in COUNTED])
    connection.execute(insert(history), {"version_num": VERSION})


@cache
def statements(dialect: str) -> tuple[str, ...]:
    """The statements that create the tables and indexes, in a fixed order; compiling them is slow."""
    database = create_mock_engine(f"{dialect}://", lambda *_: None).dialect
    made: list[ExecutableDDLElement] = []
    for table in (*metadata.sorted_tables, history):
        made += [CreateTable(table), *map(_index_made, sorted(table.indexes, key=attrgetter("name")))]
    return tuple(str(statement.compile(dialect=database)).strip() for statement in made)


def _index_made(index: Index) -> CreateIndex:
    """An index of the same rows in both databases: to declare PostgreSQL's would load its dialect."""
    if (rows := index.dialect_options["sqlite"]["where"]) is not None:
        index.dialect_options["postgresql"]["where"] = rows
    return CreateIndex(index)
