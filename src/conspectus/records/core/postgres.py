"""PostgreSQL: connections, locks, checks and erasure.

A transaction that writes holds the locks of what it looks at and changes from beginning to end: that cannot
change meanwhile, and the numbers of a collection are in commit order. These locks and, behind a pooler, all
settings end with their transaction, because the next one may get another connection. A direct connection
keeps its settings and prepared statements, and the lock by which others see that this process is alive.
"""

import hashlib
import re
import secrets
import time
from collections.abc import Iterator, Mapping, Set
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any, Final

import psycopg
from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, ProgrammingError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import ConnectionPoolEntry

from conspectus.errors import (
    Conflict,
    ConspectusError,
    InvalidInput,
    StorageBusy,
    StorageError,
    WriteOutcomeUnknown,
)
from conspectus.records.core.dialects import DIRECT
from conspectus.records.core.inline import InlineReads

WRITES = "conspectus_writes"
"""The execution option of connections that take locks at the start: the expressions that take them."""
_BEGINS: Final = "conspectus_begins"
"""The option with the statement that begins transactions; if it is empty, statements are transactions."""
_CHECKED: Final = "SELECT 1"
"""Statements are transactions after this one, or it is unknown whether one failed on a dead connection."""
_SNAPSHOT: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_LATEST: Final = "BEGIN ISOLATION LEVEL READ COMMITTED"

DRIVER = "postgresql+psycopg"
STATEMENT_SECONDS = 120
BRIEF_SECONDS: Final = 0.5
"""How long an erasure waits for reads that are about to end, although it may not hold up writers."""
_WRITE_LOCK, _MIGRATION_LOCK = 0x436F6E73_0001, 0x436F6E73_0002
MAX_LOCKS: Final = 512
"""The server has room for a few thousand locks of all transactions together; more than these are one."""
_WHOLE = f"pg_advisory_xact_lock({_WRITE_LOCK})"
_PART = f"pg_advisory_xact_lock_shared({_WRITE_LOCK})"
_SETTINGS: Final = {"standard_conforming_strings": "on", "array_nulls": "on", "extra_float_digits": "1"}
"""Timeouts, and settings that a database or role may override so that values are read differently."""
_PREPARE_AFTER, _PREPARED = 2, 400
"""Executions of a statement before it is prepared, and the number of cached statements."""
_KIND = "SELECT current_setting('server_encoding'), current_setting('server_version_num')::int"
_OLDEST = 15
_UNLIMITED = "SELECT set_config('statement_timeout', '0', true), set_config('lock_timeout', '0', true)"


class PostgresDatabase:
    """One database of a server, shared by any number of processes and machines.

    Args:
        url: `postgresql://USER:PASSWORD@HOST:PORT/NAME`; parameters of libpq may follow.
        busy_seconds: timeout of locks and of connecting.
        connections: maximum number of connections of this process.
    """

    def __init__(self, url: str, busy_seconds: float, connections: int) -> None:
        self.locks_parts = True
        self.writers = max((connections - 1) // 2, 1)
        self.readers = max(connections - 1 - self.writers, 1)
        self._busy_seconds = busy_seconds
        self.session = secrets.randbits(62)
        engine = self._engine = _engine(url, busy_seconds, self.readers + self.writers + 1, self.session)
        self.reading: Engine = engine.execution_options(**{_BEGINS: _SNAPSHOT})
        self.writing: Engine = engine.execution_options(**{WRITES: (_WHOLE,)})
        self.autocommitted: Engine = engine.execution_options(**{_BEGINS: _CHECKED})
        self.single: Engine = engine.execution_options(**{_BEGINS: ""})
        self.inline: InlineReads | None = None
        address = engine.url
        host, database = address.host or "its socket", address.database or ""
        self.name = f"PostgreSQL at {host}:{address.port or 5432}/{database}"

    def writing_to(self, locks: Set[str | None]) -> Engine:
        """Return transactions that hold these locks, or with None the write lock."""
        if None in locks or len(locks) > MAX_LOCKS:
            return self.writing
        # Locks are taken in one order, to prevent deadlocks.
        numbers = sorted(lock_number(lock) for lock in locks if lock is not None)
        taken = (_PART, *(f"pg_advisory_xact_lock({number})" for number in numbers))
        return self._engine.execution_options(**{WRITES: taken})

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()

    def prepare(self) -> None:
        """Check the database. Raises StorageError if it cannot contain a store."""
        with self._engine.connect() as connection:
            encoding, number = connection.exec_driver_sql(_KIND).one()
        if (fault := unfit(encoding, number)) is not None:
            raise StorageError(f"{self.name} {fault}")

    @contextmanager
    def migrating(self) -> Iterator[Connection]:
        """Take the migration lock, without a timeout, and then the write lock."""
        with self._engine.begin() as connection:
            connection.exec_driver_sql(_UNLIMITED)
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_MIGRATION_LOCK})")
            connection.exec_driver_sql(f"SELECT {_WHOLE}")
            yield connection

    def translated(self) -> AbstractContextManager[None]:
        """Convert errors of database and driver to ours."""
        return translated_errors(self.name)

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
            patience = self._busy_seconds if waits else min(self._busy_seconds, BRIEF_SECONDS)
            erase(connection, busy_seconds=patience)

    def may_repeat(self, fault: StorageError, *, attempt: int, undone: bool) -> bool:
        """Return whether the server rolled back for another transaction; once also for a dead connection."""
        return isinstance(fault, Undone) or (isinstance(fault, Lost) and undone and attempt == 1)

    def reported(self, fault: StorageError, *, undone: bool) -> StorageError:
        """Return the error, or WriteOutcomeUnknown if a commit was not confirmed."""
        return fault.at_the_end() if isinstance(fault, Lost) and not undone else fault


def unfit(encoding: str, number: int) -> str | None:
    """Return why a database with this encoding and server version cannot contain a store."""
    if number < _OLDEST * 10_000:
        return f"is of version {number // 10_000}; {_OLDEST} or newer is needed"
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
    )
    patience = f"{max(int(busy_seconds * 1000), 1)}ms"
    settings = {
        "statement_timeout": f"{STATEMENT_SECONDS}s",
        "lock_timeout": patience,
        "idle_in_transaction_session_timeout": patience,
        **_SETTINGS,
    }
    event.listen(engine, "connect", partial(_connected, settings, session))
    event.listen(engine, "begin", partial(_begin, _set(settings, local=True)))
    return engine


def _set(settings: Mapping[str, str], *, local: bool) -> str:
    return ", ".join(f"set_config('{name}', '{value}', {local})" for name, value in settings.items())


def _connected(settings: Mapping[str, str], session: int, opened: Any, record: ConnectionPoolEntry) -> None:
    """Set up a direct connection with settings, prepared statements and the lock of the session.

    A pooler reports a process number of its own, by which cancel requests reach it.
    """
    connection: psycopg.Connection = opened
    (process,) = connection.execute("SELECT pg_backend_pid()").fetchone() or (None,)
    if process == connection.info.backend_pid:
        connection.execute(
            f"SELECT {_set(settings, local=False)}, pg_advisory_lock_shared({session}::bigint)"
        )
        connection.prepare_threshold, connection.prepared_max = _PREPARE_AFTER, _PREPARED
        record.info[DIRECT] = True
    connection.commit()


def _begin(settings: str, connection: Connection) -> None:
    """Begin a transaction with its locks in one round trip: the driver would need one for each statement."""
    options = connection.get_execution_options()
    begins = options.get(_BEGINS, _LATEST)
    if begins in {"", _CHECKED}:
        if begins:
            connection.exec_driver_sql(begins)
        return
    # The timeouts come first, because they apply to the locks.
    first = () if DIRECT in connection.info else (settings,)
    wanted = (*first, *options.get(WRITES, ()))
    statements = [begins, *([f"SELECT {', '.join(wanted)}"] if wanted else [])]
    driver: Any = connection.connection.driver_connection
    try:
        driver.execute("; ".join(statements), prepare=False)
    except psycopg.Error:
        if driver.closed:
            # SQLAlchemy then drops all connections that it holds, as the others are likely to be dead too.
            connection.exec_driver_sql(_CHECKED)
        raise


def lock_number(name: str) -> int:
    """Return the advisory lock number of a name. A collision only causes waiting."""
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, signed=True)


_UNIQUE_VIOLATION: Final = "23505"
_READ_ONLY: Final = "25006"
_NO_CONNECTION: Final = "53300"
_UNSUPPORTED: Final = "0A000"
"""The SQLSTATE of a standby that rejects a write transaction."""
_UNDONE: Final = frozenset({"40001", "40P01"})
_AWAY: Final = ("08", "57P", "25P03")
_BUSY: Final[Mapping[str, str]] = {
    "55P03": "was held by others for too long; ask again",
    "57014": "took too long over one statement and stopped it; ask again, or for less",
    _NO_CONNECTION: "has no connection left; ask again, or have fewer of them in each process",
}
_BROKEN: Final[Mapping[str, str]] = {
    "53100": "has no space left; nothing was stored: free some space and try again",
    "42501": "does not let this user do that; grant it all rights on the schema and on what lies in it",
    _READ_ONLY: "only lets read; it may be a standby: name the server that writes",
}
_INVALID: Final[Mapping[str, tuple[str, str]]] = {
    "22003": ("number", "does not fit into 64 bits"),
    "22021": ("text", "holds a character that cannot be stored"),
    "22P05": ("text", "holds a character that cannot be stored"),
    "54000": ("text", "is too long for something that is looked up by it"),
}
_REFUSED: Final = re.compile(
    r"no password|not support SSL|certificate|FATAL: "
    r"(?!.*(the database system is|recovery|terminating|connect failed|query_wait))"
)
_FULL: Final = re.compile(r"FATAL: .*(too many|connection slots|no more connections allowed)")
"""Messages of a server or pooler that refuses a connection; the driver reports no SQLSTATE."""
_MISSPELT: Final = re.compile(r"invalid (connection option|port number|\w+ value)")


class Undone(StorageBusy):
    """The database rolled back a transaction because of another one; it may be repeated."""


class Lost(StorageBusy):
    """The connection failed: everything uncommitted is rolled back."""

    def __init__(self, fault: str) -> None:
        super().__init__(f"{fault}; what was acknowledged is stored; do the rest again")
        self._fault = fault

    def at_the_end(self) -> WriteOutcomeUnknown:
        """Return the error for a commit whose confirmation was lost."""
        return WriteOutcomeUnknown(
            f"{self._fault}; this write may or may not have been stored;"
            " documents that have keys of their own can be written again, for others look first"
        )


@contextmanager
def translated_errors(name: str) -> Iterator[None]:
    """Convert errors of the driver to ours; `name` is the database in messages."""
    try:
        yield
    except DBAPIError as error:
        raise _translated(error.orig, name) from error
    except psycopg.Error as error:
        raise _translated(error, name) from error
    except PoolTimeout as error:
        raise StorageBusy(f"{name}: all connections of this process are in use; try again") from error
    except SQLAlchemyError as error:
        raise StorageError(f"{name}: {error}") from error
    except UnicodeEncodeError as error:
        raise InvalidInput("text", "holds an unpaired surrogate, which cannot be stored") from error


def _translated(error: BaseException | None, name: str) -> ConspectusError:
    state = getattr(error, "sqlstate", None) or ""
    reason = str(error).strip().split("\n")[0]
    if state == _UNIQUE_VIOLATION:
        return Conflict("row", reason, "exists already")
    if state in _INVALID:
        return InvalidInput(*_INVALID[state])
    if state == _UNSUPPORTED and "recovery" in reason:
        state = _READ_ONLY
    if not state and _FULL.search(str(error)):
        state = _NO_CONNECTION
    if state in _BUSY:
        return StorageBusy(f"{name} {_BUSY[state]} ({reason})")
    if state in _BROKEN:
        return StorageError(f"{name} {_BROKEN[state]} ({reason})")
    if state in _UNDONE:
        return Undone(f"{name} undid a transaction for another: {reason}")
    return _unanswered(error, state, name, reason)


def _unanswered(error: BaseException | None, state: str, name: str, reason: str) -> ConspectusError:
    """Return the error for errors without an SQLSTATE in the tables above."""
    if not state and _MISSPELT.search(reason):
        return InvalidInput("path", f"cannot connect: {reason}")
    if state.startswith(_AWAY) or (isinstance(error, psycopg.OperationalError) and not state):
        if _REFUSED.search(str(error)):
            return StorageError(
                f"{name} refuses the connection; check user, password, name and TLS ({reason})"
            )
        return Lost(f"{name} does not answer ({reason})")
    if isinstance(error, psycopg.DataError):
        return InvalidInput("text", f"cannot be stored: {reason}")
    return StorageError(f"{name}: {reason}")


_PAUSE_SECONDS: Final = 0.02
_CLEARS_STATISTICS: Final = (18,)
_NO_SUCH_TABLE: Final = "42P01"
_NOW: Final = "SELECT CAST(pg_current_xact_id() AS text)"
_READERS: Final = """
SELECT pg_snapshot_xmin(pg_current_snapshot()) <= CAST('{}' AS xid8)
OR EXISTS (SELECT FROM pg_stat_activity WHERE coalesce(datname, current_database()) = current_database()
  AND pid <> pg_backend_pid() AND age(backend_xmin) >= age(CAST(CAST('{}' AS xid8) AS xid)))
OR EXISTS (SELECT FROM pg_replication_slots
  WHERE greatest(age(xmin), age(catalog_xmin)) >= age(CAST(CAST('{}' AS xid8) AS xid)))
"""
"""Whether deleted rows must be kept: for a transaction of any database of the server, prepared ones included,
for a snapshot in this database, or for a replica.
"""
_UNKNOWN: Final = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND query = '<insufficient privilege>'
"""
"""Sessions of other users, whose snapshots are hidden from this one."""
_KEPT: Final = re.compile(r"\d+")
_OURS: Final = """
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r' AND n.nspname = ANY (current_schemas(false)) AND pg_table_is_visible(c.oid)
AND pg_has_role(c.relowner, 'USAGE') AND c.relname !~ '^index_[0-9a-f]+_'
"""
"""The tables of the records, in any schema of the search path. Indexes replace their own tables."""
_TABLES: Final = f"""
SELECT CAST(c.oid AS bigint),
    quote_ident(n.nspname) || '.' || quote_ident(c.relname), pg_relation_filenode(c.oid)
{_OURS}
"""
_FILE: Final = "SELECT pg_relation_filenode({})"
_STATISTICS: Final = "pg_catalog.pg_statistic"
_MAY_REWRITE: Final = (
    "SELECT pg_has_role(datdba, 'USAGE') FROM pg_database WHERE datname = current_database()"
)
"""A role that does not own the database gets a warning instead of the statistics."""
_CLEAR: Final = f"""
SELECT pg_clear_attribute_stats(schemaname, tablename, attname, inherited) FROM pg_stats
WHERE (schemaname, tablename) IN (SELECT n.nspname, c.relname {_OURS})
"""


def erase(connection: Connection, *, busy_seconds: float) -> None:
    """Rewrite every table of the records, once no reader sees what was deleted. Raises StorageBusy.

    Each wait, for readers and for each table, may take `busy_seconds`. When this returns, no transaction saw
    what was deleted when its tables were rewritten; where sessions of other users hide that, the server said
    that it kept no deleted row. The connection must not be in a transaction. No lock wait or setting is left
    to the session, which a pooler may give to others between two statements.
    """
    _wait_for_readers(connection, busy_seconds=busy_seconds)
    if (connection.dialect.server_version_info or ()) >= _CLEARS_STATISTICS:
        connection.exec_driver_sql(_CLEAR)
    for number, table, file in connection.exec_driver_sql(_TABLES).all():
        give_up = time.monotonic() + busy_seconds
        while not _rewritten(connection, table, _FILE.format(number), before=file):
            _wait(give_up)
    _erase_statistics(connection, busy_seconds=busy_seconds)


def _wait_for_readers(connection: Connection, *, busy_seconds: float) -> None:
    """Wait until no transaction sees what was deleted before this call. Raises StorageBusy."""
    give_up = time.monotonic() + busy_seconds
    now = connection.exec_driver_sql(_NOW).scalar_one()
    readers = _READERS.format(now, now, now)
    while connection.exec_driver_sql(readers).scalar_one():
        _wait(give_up)


def _erase_statistics(connection: Connection, *, busy_seconds: float) -> None:
    """Rewrite the statistics, which contain the most common values of columns."""
    if not connection.exec_driver_sql(_MAY_REWRITE).scalar_one():
        connection.exec_driver_sql(f"VACUUM (FULL, SKIP_LOCKED) {_STATISTICS}")
        return
    _wait_for_readers(connection, busy_seconds=busy_seconds)
    give_up = time.monotonic() + busy_seconds
    file = _FILE.format(f"'{_STATISTICS}'")
    before = connection.exec_driver_sql(file).scalar_one()
    while not _rewritten(connection, _STATISTICS, file, before=before, analyze=False):
        _wait(give_up)


def _rewritten(connection: Connection, table: str, file: str, *, before: Any, analyze: bool = True) -> bool:
    """Return whether the table was rewritten without what was deleted, or is gone; not while it is in use."""
    kept: list[int] = []

    def note(notice: psycopg.errors.Diagnostic) -> None:
        # The server tells how many deleted rows it kept, in any language first.
        number = _KEPT.search(notice.message_detail or "")
        if notice.severity_nonlocalized == "INFO" and number is not None:
            kept.append(int(number[0]))

    driver: Any = connection.connection.driver_connection
    driver.add_notice_handler(note)
    try:
        connection.exec_driver_sql(f"VACUUM (FULL, VERBOSE, SKIP_LOCKED) {table}")
    except ProgrammingError as fault:
        if getattr(fault.orig, "sqlstate", None) != _NO_SUCH_TABLE:
            raise
        return True
    finally:
        driver.remove_notice_handler(note)
    if connection.exec_driver_sql(file).scalar_one() == before:
        return False
    if analyze:
        connection.exec_driver_sql(f"ANALYZE (SKIP_LOCKED) {table}")
    return kept[-1:] == [0] or not connection.exec_driver_sql(_UNKNOWN).scalar_one()


def _wait(give_up: float) -> None:
    if time.monotonic() > give_up:
        raise StorageBusy(
            "a reader or a writer, in any database of this server, still uses deleted data or may see it; end"
            " its transaction (pg_stat_activity, pg_prepared_xacts), or wait: the erasure goes on by itself"
        )
    time.sleep(_PAUSE_SECONDS)
