"""PostgreSQL: connections, locks and checks.

A transaction that writes holds the locks of what it looks at and changes from beginning to end: that cannot
change meanwhile, and the numbers of a collection are in commit order. These locks and, behind a pooler, all
settings end with their transaction, because the next one may get another connection. A direct connection
keeps its settings and prepared statements, and the lock by which others see that this process is alive.
"""

import hashlib
import secrets
from collections.abc import Iterator, Mapping, Set
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any, Final

import psycopg
from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import ConnectionPoolEntry

from conspectus.errors import InvalidInput, StorageError
from conspectus.records.core.compiled_statements import compiled_statements
from conspectus.records.core.inline import InlineReads
from conspectus.records.core.postgres_erasure import erase
from conspectus.records.core.postgres_errors import ConnectionLost, RolledBack, convert_errors
from conspectus.records.core.server_sessions import DIRECT

WRITES = "conspectus_writes"
"""The execution option of connections that take locks at the start: the expressions that take them."""
_BEGINS: Final = "conspectus_begins"
"""The option with the statement that begins transactions; if it is empty, statements are transactions."""
_AUTOCOMMIT_CHECK: Final = "SELECT 1"
"""Statements are transactions after this one, or it is unknown whether one failed on a dead connection."""
_SNAPSHOT: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_LATEST: Final = "BEGIN ISOLATION LEVEL READ COMMITTED"

DRIVER = "postgresql+psycopg"
STATEMENT_SECONDS = 120
BRIEF_SECONDS: Final = 0.5
"""How long an erasure waits for reads that are about to end, although it may not hold up writers."""
_WRITE_LOCK, _MIGRATION_LOCK = 0x436F6E73_0001, 0x436F6E73_0002
MAX_LOCKS: Final = 512
"""A transaction with more locks takes the write lock: all transactions share a few thousand locks."""
_LOCK_DATABASE = f"pg_advisory_xact_lock({_WRITE_LOCK})"
_SHARE_DATABASE = f"pg_advisory_xact_lock_shared({_WRITE_LOCK})"
_SETTINGS: Final = {"standard_conforming_strings": "on", "array_nulls": "on", "extra_float_digits": "1"}
"""Settings that a database or role may override, so that values would be read differently."""
_PREPARE_AFTER_EXECUTIONS, _MAX_PREPARED_STATEMENTS = 2, 400
_ENCODING_AND_VERSION = (
    "SELECT current_setting('server_encoding'), current_setting('server_version_num')::int"
)
_MIN_SERVER_VERSION = 15
_UNLIMITED = "SELECT set_config('statement_timeout', '0', true), set_config('lock_timeout', '0', true)"


class PostgresDatabase:
    """One database of a server, shared by any number of processes and machines.

    Args:
        url: `postgresql://USER:PASSWORD@HOST:PORT/NAME`; parameters of libpq may follow.
        busy_seconds: timeout of locks and of connecting.
        connections: maximum number of connections of this process.
    """

    def __init__(self, url: str, busy_seconds: float, connections: int) -> None:
        self.has_partial_locks = True
        self.writers = max((connections - 1) // 2, 1)
        self.readers = max(connections - 1 - self.writers, 1)
        self._busy_seconds = busy_seconds
        self.session = secrets.randbits(62)
        engine = self._engine = _engine(url, busy_seconds, self.readers + self.writers + 1, self.session)
        self.reading: Engine = engine.execution_options(**{_BEGINS: _SNAPSHOT})
        self.writing: Engine = engine.execution_options(**{WRITES: (_LOCK_DATABASE,)})
        self.autocommitted: Engine = engine.execution_options(**{_BEGINS: _AUTOCOMMIT_CHECK})
        self.single: Engine = engine.execution_options(**{_BEGINS: ""})
        self.inline: InlineReads | None = None
        address = engine.url
        host, database = address.host or "its socket", address.database or ""
        self.name = f"PostgreSQL at {host}:{address.port or 5432}/{database}"

    def with_locks(self, locks: Set[str | None]) -> Engine:
        """Return transactions that hold these locks, or with None the write lock."""
        if None in locks or len(locks) > MAX_LOCKS:
            return self.writing
        # Locks are taken in one order, to prevent deadlocks.
        numbers = sorted(lock_number(lock) for lock in locks if lock is not None)
        lock_calls = (_SHARE_DATABASE, *(f"pg_advisory_xact_lock({number})" for number in numbers))
        return self._engine.execution_options(**{WRITES: lock_calls})

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()

    def prepare(self) -> None:
        """Check the database. Raises StorageError if it cannot contain a store."""
        with self._engine.connect() as connection:
            encoding, number = connection.exec_driver_sql(_ENCODING_AND_VERSION).one()
        if (fault := reason_unfit(encoding, number)) is not None:
            raise StorageError(f"{self.name} {fault}")

    @contextmanager
    def begin_migration(self) -> Iterator[Connection]:
        """Take the migration lock, without a timeout, and then the write lock."""
        with self._engine.begin() as connection:
            connection.exec_driver_sql(_UNLIMITED)
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_MIGRATION_LOCK})")
            connection.exec_driver_sql(f"SELECT {_LOCK_DATABASE}")
            yield connection

    def convert_errors(self) -> AbstractContextManager[None]:
        """Convert errors of database and driver to ours."""
        return convert_errors(self.name)

    def problems(self, connection: Connection) -> list[str]:
        """Return the invalid constraints and indexes of the schema."""
        broken = connection.exec_driver_sql(
            "SELECT quote_ident(n.nspname) || '.' || quote_ident(c.relname)"
            " FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid"
            " JOIN pg_namespace n ON n.oid = c.relnamespace"
            " WHERE NOT i.indisvalid AND n.nspname = ANY (current_schemas(false))"
        )
        return [f"the index {name} is not valid; run REINDEX INDEX {name}" for (name,) in broken]

    def erase(self, *, waits: bool = True) -> None:
        """Rewrite the tables without deleted rows, once no reader sees them. Raises StorageBusy.

        Afterwards no file of a table or an index contains them; the old files are deleted at the server's
        next checkpoint. The write-ahead log, archives and backups are kept as the server's owner configured.
        """
        with self.autocommitted.connect() as connection:
            timeout = self._busy_seconds if waits else min(self._busy_seconds, BRIEF_SECONDS)
            erase(connection, busy_seconds=timeout)

    def may_repeat(self, fault: StorageError, *, attempt: int, undone: bool) -> bool:
        """Return whether the server rolled back for another transaction; once also for a dead connection."""
        if isinstance(fault, ConnectionLost):
            return undone and attempt == 1
        return isinstance(fault, RolledBack)

    def to_caller_error(self, fault: StorageError, *, undone: bool) -> StorageError:
        """Return the error, or WriteOutcomeUnknown if a commit was not confirmed."""
        return fault.as_unknown_outcome() if isinstance(fault, ConnectionLost) and not undone else fault


def reason_unfit(encoding: str, number: int) -> str | None:
    """Return why a database with this encoding and server version cannot contain a store."""
    if number < _MIN_SERVER_VERSION * 10_000:
        return f"is of version {number // 10_000}; {_MIN_SERVER_VERSION} or newer is needed"
    if encoding != "UTF8":
        return f"stores text as {encoding}; make it anew with ENCODING 'UTF8' TEMPLATE template0"
    return None


def _engine(url: str, busy_seconds: float, connections: int, session: int) -> Engine:
    try:
        address = make_url(url).set(drivername=DRIVER)
    except (ArgumentError, ValueError) as fault:
        raise InvalidInput(
            "path", "is not a URL of PostgreSQL; expected postgresql://USER@HOST:PORT/NAME"
        ) from fault
    if "@" in f"{address.host}{address.database}":
        raise InvalidInput("path", "has an @ in the password: write %40 for it, or set PGPASSWORD instead")
    engine = create_engine(
        address,
        connect_args={
            "prepare_threshold": None,
            "connect_timeout": max(int(busy_seconds), 1),
            "client_encoding": "utf8",
        },
        isolation_level="AUTOCOMMIT",
        pool_size=connections,
        pool_timeout=busy_seconds,
        max_overflow=0,
        hide_parameters=True,
        execution_options={"compiled_cache": compiled_statements()},
    )
    lock_timeout = f"{max(int(busy_seconds * 1000), 1)}ms"
    settings = {
        "statement_timeout": f"{STATEMENT_SECONDS}s",
        "lock_timeout": lock_timeout,
        "idle_in_transaction_session_timeout": lock_timeout,
        **_SETTINGS,
    }
    event.listen(engine, "connect", partial(_set_up_connection, settings, session))
    event.listen(engine, "begin", partial(_begin, _set_config_calls(settings, local=True)))
    return engine


def _set_config_calls(settings: Mapping[str, str], *, local: bool) -> str:
    return ", ".join(f"set_config('{name}', '{value}', {local})" for name, value in settings.items())


def _set_up_connection(
    settings: Mapping[str, str], session: int, opened: Any, record: ConnectionPoolEntry
) -> None:
    """Set up a direct connection with settings, prepared statements and the lock of the session.

    A pooler reports a process number of its own, by which cancel requests reach it.
    """
    connection: psycopg.Connection = opened
    (process,) = connection.execute("SELECT pg_backend_pid()").fetchone() or (None,)
    if process == connection.info.backend_pid:
        connection.execute(
            f"SELECT {_set_config_calls(settings, local=False)}, pg_advisory_lock_shared({session}::bigint)"
        )
        connection.prepare_threshold = _PREPARE_AFTER_EXECUTIONS
        connection.prepared_max = _MAX_PREPARED_STATEMENTS
        record.info[DIRECT] = True
    connection.commit()


def _begin(settings: str, connection: Connection) -> None:
    """Begin a transaction with its locks in one round trip: the driver would need one for each statement."""
    options = connection.get_execution_options()
    begins = options.get(_BEGINS, _LATEST)
    if begins in {"", _AUTOCOMMIT_CHECK}:
        if begins:
            connection.exec_driver_sql(begins)
        return
    calls = list(options.get(WRITES, ()))
    if DIRECT not in connection.info:
        # The timeouts come first, because they apply to the locks.
        calls.insert(0, settings)
    statements = [begins, f"SELECT {', '.join(calls)}"] if calls else [begins]
    driver: Any = connection.connection.driver_connection
    try:
        driver.execute("; ".join(statements), prepare=False)
    except psycopg.Error:
        if driver.closed:
            # SQLAlchemy then drops all connections that it holds, as the others are likely to be dead too.
            connection.exec_driver_sql(_AUTOCOMMIT_CHECK)
        raise


def lock_number(name: str) -> int:
    """Return the advisory lock number of a name. A collision only causes waiting."""
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, signed=True)
