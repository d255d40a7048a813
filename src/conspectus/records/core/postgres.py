"""Everything that only PostgreSQL needs: how it is connected to, locked and checked.

A transaction that writes holds one lock of the database from its beginning to its end, as in SQLite: what it
looked at cannot change under it, and the numbers it takes are ordered as commits are. Every lock and setting
ends with its transaction, so that a pooler may give each transaction another connection.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError

from conspectus.errors import InvalidInput, StorageError
from conspectus.records.core.postgres_errors import Lost, Undone, translated_errors
from conspectus.records.core.postgres_purge import erase

WRITES = "conspectus_writes"
"""The execution option of connections that take the write lock when they begin."""

DRIVER = "postgresql+psycopg"
AUTOCOMMIT = "AUTOCOMMIT"
STATEMENT_SECONDS = 120
_WRITE_LOCK, _MIGRATION_LOCK = 0x436F6E73_0001, 0x436F6E73_0002
_BEGIN = (
    "SELECT set_config('statement_timeout', '{}s', true), set_config('lock_timeout', '{}ms', true),"
    " set_config('idle_in_transaction_session_timeout', '{}ms', true),"
    " set_config('standard_conforming_strings', 'on', true), set_config('array_nulls', 'on', true),"
    " set_config('extra_float_digits', '1', true)"
)
"""Limits, and the settings by which a database or a role may have a value written or read as another one."""
_KIND = "SELECT current_setting('server_encoding'), current_setting('server_version_num')::int"
_OLDEST = 15
_UNLIMITED = "SELECT set_config('statement_timeout', '0', true), set_config('lock_timeout', '0', true)"


class PostgresDatabase:
    """One database of a server, which any number of processes and machines share.

    Args:
        url: `postgresql://USER:PASSWORD@HOST:PORT/NAME`; parameters of libpq may follow.
        busy_seconds: how long a writer waits for another, and how long connecting may take.
        connections: the most that this process has at once.
    """

    def __init__(self, url: str, busy_seconds: float, connections: int) -> None:
        self.readers = max(connections - 2, 1)
        self._busy_seconds = busy_seconds
        engine = self._engine = _engine(url, busy_seconds, self.readers + 2)
        self.reading: Engine = engine.execution_options(
            isolation_level="REPEATABLE READ", postgresql_readonly=True
        )
        self.writing: Engine = engine.execution_options(**{WRITES: True})
        self.beside: Engine = engine.execution_options(isolation_level=AUTOCOMMIT)
        address = engine.url
        host, database = address.host or "its socket", address.database or ""
        self.name = f"PostgreSQL at {host}:{address.port or 5432}/{database}"

    def prepare(self) -> None:
        """Look at what the database is. Raises StorageError where it is none that a store can be in."""
        with self._engine.connect() as connection:
            encoding, number = connection.exec_driver_sql(_KIND).one()
        if (fault := unfit(encoding, number)) is not None:
            raise StorageError(f"{self.name} {fault}")

    @contextmanager
    def migrating(self) -> Iterator[Connection]:
        """The write lock, and before it the one of migrations, for which processes wait without a limit."""
        with self._engine.begin() as connection:
            connection.exec_driver_sql(_UNLIMITED)
            for lock in (_MIGRATION_LOCK, _WRITE_LOCK):
                connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({lock})")
            yield connection

    def translated(self) -> AbstractContextManager[None]:
        """The one border where errors of database and driver become ours."""
        return translated_errors(self.name)

    def problems(self, connection: Connection) -> list[str]:
        """What the server finds wrong with the schema: constraints and indexes that do not hold."""
        broken = connection.exec_driver_sql(
            "SELECT quote_ident(n.nspname) || '.' || quote_ident(c.relname)"
            " FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid"
            " JOIN pg_namespace n ON n.oid = c.relnamespace"
            " WHERE NOT i.indisvalid AND n.nspname = ANY (current_schemas(false))"
        )
        return [f"the index {name} is not valid; run REINDEX INDEX {name}" for (name,) in broken]

    def erase(self) -> None:
        """Rewrite the tables without what was deleted, once no reader sees that any more. Raises StorageBusy.

        No file of a table or an index holds it after that, with the old files gone at the server's next
        checkpoint. Its write-ahead log, archives and backups keep what was written for as long as the
        server's owner has them kept.
        """
        with self.beside.connect() as connection:
            erase(connection, busy_seconds=self._busy_seconds)

    def may_repeat(self, fault: StorageError, *, attempt: int, undone: bool) -> bool:
        """Whether the server undid it for another; once also where its connection was found dead."""
        return isinstance(fault, Undone) or (isinstance(fault, Lost) and undone and attempt == 1)

    def told(self, fault: StorageError, *, undone: bool) -> StorageError:
        """The fault, with what nobody knows where no answer came to what ends a transaction."""
        return fault.at_the_end() if isinstance(fault, Lost) and not undone else fault


def unfit(encoding: str, number: int) -> str | None:
    """Why a database of this encoding, on a server of this version's number, cannot hold a store."""
    if number < _OLDEST * 10_000:
        return f"is of version {number // 10_000}; {_OLDEST} or newer is needed"
    if encoding != "UTF8":
        return f"stores text as {encoding}; make it anew with ENCODING 'UTF8' TEMPLATE template0"
    return None


def _engine(url: str, busy_seconds: float, connections: int) -> Engine:
    try:
        address = make_url(url).set(drivername=DRIVER)
    except (ArgumentError, ValueError) as fault:
        raise InvalidInput("path", "is no URL of PostgreSQL; postgresql://USER@HOST:PORT/NAME is") from fault
    if "@" in f"{address.host}{address.database}":
        raise InvalidInput("path", "has an @ in the password: write %40 for it, or set PGPASSWORD instead")
    engine = create_engine(
        address,
        # A pooler may run the next transaction on another connection, which knows no prepared statement.
        connect_args={
            "prepare_threshold": None,
            "connect_timeout": max(int(busy_seconds), 1),
            "client_encoding": "utf8",
        },
        isolation_level="READ COMMITTED",
        pool_size=connections,
        pool_timeout=busy_seconds,
        max_overflow=0,
        hide_parameters=True,
    )
    patience = max(int(busy_seconds * 1000), 1)
    limits = _BEGIN.format(STATEMENT_SECONDS, patience, patience)
    event.listen(engine, "begin", lambda connection: _begin(connection, limits))
    return engine


def _begin(connection: Connection, limits: str) -> None:
    options = connection.get_execution_options()
    if options.get("isolation_level") == AUTOCOMMIT:
        # Nothing else would tell whether a statement failed on a dead connection or after it was carried out.
        connection.exec_driver_sql("SELECT 1")
        return
    connection.exec_driver_sql(limits)
    if options.get(WRITES, False):
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_WRITE_LOCK})")
