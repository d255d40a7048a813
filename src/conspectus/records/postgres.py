"""Everything that only PostgreSQL needs: how it is connected to, locked, checked, and what its errors mean.

A transaction that writes holds one lock of the database from its beginning to its end, as in SQLite: what it
looked at cannot change under it, and the numbers it takes are ordered as commits are. Every lock and setting
ends with its transaction, so that a pooler may give each transaction another connection.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import psycopg
from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from conspectus.errors import Conflict, ConspectusError, InvalidInput, StorageBusy, StorageError

WRITES = "conspectus_writes"
"""The execution option of connections that take the write lock when they begin."""

DRIVER = "postgresql+psycopg"
STATEMENT_SECONDS = 120
_WRITE_LOCK, _MIGRATION_LOCK = 0x436F6E73_0001, 0x436F6E73_0002
_BEGIN = "SELECT set_config('statement_timeout', '{}s', true), set_config('lock_timeout', '{}ms', true)"
_TAKEN = "23505"
_UNDONE = frozenset({"40001", "40P01"})
_WAITED = frozenset({"55P03", "57014"})
_AWAY = ("08", "57P")
_FULL = "53100"
_OUT_OF_RANGE = "22003"
_UNTRANSLATABLE = frozenset({"22021", "22P05"})


class Undone(StorageBusy):
    """The database undid a transaction for the sake of another; it may be run again."""


class PostgresDatabase:
    """One database of a server, which any number of processes and machines share.

    Args:
        url: `postgresql://USER:PASSWORD@HOST:PORT/NAME`; parameters of libpq may follow.
        busy_seconds: how long a writer waits for another, and how long connecting may take.
        connections: the most that this process has at once.
    """

    def __init__(self, url: str, busy_seconds: float, connections: int) -> None:
        self.readers = max(connections - 1, 1)
        engine = _engine(url, busy_seconds, self.readers + 1)
        self.reading: Engine = engine.execution_options(
            isolation_level="REPEATABLE READ", postgresql_readonly=True
        )
        self.writing: Engine = engine.execution_options(**{WRITES: True})
        address = engine.url
        self.name = f"PostgreSQL at {address.host or 'its socket'}:{address.port or 5432}/{address.database}"

    def prepare(self) -> None:
        """Nothing: the server is ready or it is not."""

    @contextmanager
    def migrating(self) -> Iterator[Connection]:
        """The write lock, and before it the one of migrations, for which processes wait without a limit."""
        with self.writing.connect() as connection:
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_MIGRATION_LOCK})")
            yield connection
            connection.commit()

    def translated(self) -> AbstractContextManager[None]:
        """The one border where errors of database and driver become ours."""
        return translated_errors(self.name)

    def problems(self, connection: Connection) -> list[str]:
        """What the server finds wrong with the schema: constraints and indexes that do not hold."""
        broken = connection.exec_driver_sql(
            "SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid"
            " WHERE NOT i.indisvalid AND c.relnamespace = current_schema()::regnamespace"
        )
        return [f"the index {name} is not valid; run REINDEX INDEX {name}" for (name,) in broken]

    def erase(self) -> None:
        """Rewrite the tables without what was deleted; the write-ahead log goes as the server recycles it."""
        with self.reading.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            tables = connection.exec_driver_sql(
                "SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = current_schema()"
            )
            for (table,) in tables.all():
                connection.exec_driver_sql(f"VACUUM (FULL) {table}")
            connection.exec_driver_sql("SELECT pg_switch_wal()")

    def may_repeat(self, fault: StorageError) -> bool:
        """Whether the transaction was undone, or never began."""
        return isinstance(fault, Undone)


@contextmanager
def translated_errors(name: str) -> Iterator[None]:
    """Errors of the driver as ours; `name` says which database is meant."""
    try:
        yield
    except DBAPIError as error:
        raise _translated(error.orig, name) from error
    except psycopg.Error as error:
        raise _translated(error, name) from error
    except SQLAlchemyError as error:
        raise StorageError(f"{name}: {error}") from error
    except UnicodeEncodeError as error:
        raise InvalidInput("text", "holds half of a surrogate pair, which cannot be stored") from error


def _translated(error: BaseException | None, name: str) -> ConspectusError:
    state = getattr(error, "sqlstate", None) or ""
    reason = str(error).strip().split("\n")[0]
    if state == _TAKEN:
        return Conflict("row", reason, "is there already")
    if state in _UNDONE:
        return Undone(f"{name} undid a transaction for another: {reason}")
    if state in _WAITED:
        return StorageBusy(f"{name} was held by others for too long; ask again: {reason}")
    if state == _OUT_OF_RANGE:
        return InvalidInput("number", "does not fit into 64 bits")
    if state in _UNTRANSLATABLE or isinstance(error, psycopg.DataError):
        return InvalidInput("text", f"cannot be stored: {reason}")
    if state == _FULL:
        return StorageError(f"{name} has no space left; nothing was stored: make room and do it again")
    if state.startswith(_AWAY) or (isinstance(error, psycopg.OperationalError) and not state):
        return StorageBusy(
            f"{name} does not answer ({reason}); what was acknowledged is stored; do the rest again"
        )
    return StorageError(f"{name}: {reason}")


def _engine(url: str, busy_seconds: float, connections: int) -> Engine:
    try:
        address = make_url(url).set(drivername=DRIVER)
    except ArgumentError as fault:
        raise InvalidInput("path", "is no URL of PostgreSQL; postgresql://USER@HOST:PORT/NAME is") from fault
    engine = create_engine(
        address,
        # A pooler may run the next transaction on another connection, which knows no prepared statement.
        connect_args={"prepare_threshold": None, "connect_timeout": max(int(busy_seconds), 1)},
        isolation_level="READ COMMITTED",
        pool_size=connections,
        pool_timeout=busy_seconds,
        max_overflow=0,
        hide_parameters=True,
    )
    limits = _BEGIN.format(STATEMENT_SECONDS, max(int(busy_seconds * 1000), 1))
    event.listen(engine, "begin", lambda connection: _begin(connection, limits))
    return engine


def _begin(connection: Connection, limits: str) -> None:
    connection.exec_driver_sql(limits)
    if connection.get_execution_options().get(WRITES, False):
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_WRITE_LOCK})")
