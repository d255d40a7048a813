"""SQLite: opening, locks, checks, and the erasure of deleted content."""

import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from json import JSONDecodeError
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Dialect, Engine, create_engine, event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry

from conspectus.errors import (
    Conflict,
    ConspectusError,
    InvalidInput,
    RecordsDamaged,
    StorageBusy,
    StorageError,
)
from conspectus.private import make_file
from conspectus.records.core.compiled_statements import compiled_statements
from conspectus.records.core.dialects import NUL
from conspectus.records.core.inline import INLINE, InlineReads
from conspectus.records.core.sqlite_driver import sqlite_driver

WRITES = "conspectus_writes"
"""The execution option of connections that take the write lock at the start."""

SETTINGS = (
    "PRAGMA foreign_keys = ON",
    "PRAGMA synchronous = FULL",
    "PRAGMA secure_delete = ON",
    "PRAGMA cache_size = -8192",
    "PRAGMA wal_autocheckpoint = 4000",
    "PRAGMA journal_size_limit = 67108864",
)
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_UNIQUE_VIOLATIONS = {sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY}
_FULL = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE}
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_IOERR}
_READ_ONLY = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_READONLY_DIRECTORY}
_PRIMARY_CODE = 0xFF
_PAUSE_SECONDS = 0.02


class SqliteDatabase:
    """One file with a single writer; readers see a snapshot."""

    def __init__(self, path: Path, *, busy_seconds: float, readers: int) -> None:
        self.reading = sqlite_engine(path, busy_seconds=busy_seconds, connections=readers + 2)
        self.writing: Engine = self.reading.execution_options(**{WRITES: True})
        self.autocommitted: Engine = self.writing
        self.single: Engine = self.reading
        self.name = str(path)
        self.inline: InlineReads | None = InlineReads(
            path, partial(sqlite_engine, path, busy_seconds=0, connections=1)
        )
        self.readers = readers
        self.writers = 1
        self.has_partial_locks = False
        self.session: int | None = None
        self._busy_seconds = busy_seconds

    def with_locks(self, locks: Set[str | None]) -> Engine:
        """Ignore the locks: a file has a single writer."""
        return self.writing

    def prepare(self) -> None:
        """Switch a new database to WAL mode, unless it is read-only; safe in two processes at once."""
        if is_read_only(Path(self.name)):
            return
        with self.reading.connect() as connection:
            fault = f"{self.name}: another process has locked it; try again"
            self._wait_until(partial(_in_wal, sqlite_driver(connection)), fault, seconds=self._busy_seconds)

    def begin_migration(self) -> AbstractContextManager[Connection]:
        """Return a transaction during which no other process migrates."""
        return begin_migration(self.reading)

    def convert_errors(self) -> AbstractContextManager[None]:
        """Convert errors of the database to ours."""
        return convert_errors(self.reading)

    def problems(self, connection: Connection) -> list[str]:
        """Return the problems that SQLite finds in pages and references."""
        pages = [row[0] for row in connection.exec_driver_sql("PRAGMA integrity_check")]
        broken = connection.exec_driver_sql("PRAGMA foreign_key_check").all()
        references = [f"{table} row {row} refers to no {parent}" for table, row, parent, _ in broken]
        return [line for line in pages if line != "ok"] + references

    def erase(self, *, waits: bool = True) -> None:
        """Rewrite the file without its free pages, and truncate the log once readers have ended.

        Raises StorageBusy.
        """
        with self.reading.connect() as connection:
            driver = sqlite_driver(connection)
            driver.execute("VACUUM")
            fault = f"{self.name}: a reader still needs the log that holds deleted content"
            self._wait_until(
                partial(_log_is_free, driver), fault, seconds=self._busy_seconds if waits else 0.0
            )

    def _wait_until(self, is_done: Callable[[], bool], fault: str, *, seconds: float) -> None:
        """Wait until a check succeeds. Raises StorageBusy with the message `fault` after some seconds."""
        deadline = time.monotonic() + seconds
        while not is_done():
            if time.monotonic() > deadline:
                raise StorageBusy(fault)
            time.sleep(_PAUSE_SECONDS)

    def close(self) -> None:
        """Close every connection."""
        if self.inline is not None:
            self.inline.close()
        self.reading.dispose()

    def may_repeat(self, fault: StorageError, *, attempt: int, undone: bool) -> bool:
        """Return false: a timeout of the lock is not retried."""
        return False

    def to_caller_error(self, fault: StorageError, *, undone: bool) -> StorageError:
        """Return the error unchanged: the outcome of a local commit is always known."""
        return fault


def sqlite_engine(path: Path, *, busy_seconds: float, connections: int) -> Engine:
    """Return an engine with explicit transactions, which take the write lock if `WRITES` is set."""
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        connect_args={"check_same_thread": False, "timeout": busy_seconds, "cached_statements": 256},
        pool_size=connections,
        max_overflow=0,
        hide_parameters=True,
        execution_options={"compiled_cache": compiled_statements()},
    )
    event.listen(engine, "do_connect", _connect)
    event.listen(engine, "connect", _configure)
    event.listen(engine, "begin", _begin)
    event.listen(engine, "before_cursor_execute", _refuse_nul)
    return engine


def is_read_only(path: Path) -> bool:
    """Return whether the database exists and this process cannot write to it."""
    return path.exists() and not all(os.access(location, os.W_OK) for location in (path, path.parent))


@contextmanager
def begin_migration(engine: Engine) -> Iterator[Connection]:
    """Take the write lock with foreign keys off, for a migration that must recreate a table.

    Otherwise dropping the table would delete all rows that refer to it.
    """
    with engine.execution_options(**{WRITES: True}).connect() as connection:
        driver = sqlite_driver(connection)
        driver.execute("PRAGMA foreign_keys = OFF")
        try:
            with connection.begin():
                yield connection
        finally:
            driver.execute("PRAGMA foreign_keys = ON")


@contextmanager
def convert_errors(engine: Engine) -> Iterator[None]:
    """Convert errors of database and driver to ours."""
    path = str(engine.url.database)
    try:
        yield
    except DBAPIError as error:
        raise _to_our_error(error.orig, path) from error
    except sqlite3.Error as error:
        raise _to_our_error(error, path) from error
    except SQLAlchemyError as error:
        raise StorageError(f"{path}: {error}") from error
    except UnicodeEncodeError as error:
        raise InvalidInput("text", "holds an unpaired surrogate, which cannot be stored") from error
    except (UnicodeDecodeError, JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        # A flipped bit may turn a text into bytes, or a number into NULL.
        raise RecordsDamaged(
            f"{path}: a row cannot be read; run `conspectus check`, and restore a backup if it names damage"
            f" ({error})"
        ) from error
    except OverflowError as error:
        raise InvalidInput("number", "does not fit into 64 bits") from error


def _to_our_error(error: BaseException | None, path: str) -> ConspectusError:
    code = getattr(error, "sqlite_errorcode", None)
    if code in _UNIQUE_VIOLATIONS:
        return Conflict("row", str(error), "exists already")
    if code is not None and code & _PRIMARY_CODE in _BUSY:
        return StorageBusy(f"{path} is in use by another process: {error}")
    if code in _FULL:
        return StorageError(
            f"{path} has no space left; nothing was stored: free some space and try again ({error})"
        )
    if code is not None and code & _PRIMARY_CODE in _DAMAGED:
        return StorageError(f"{path} is damaged or cannot be read; restore a backup ({error})")
    if code in _READ_ONLY:
        return StorageError(f"{path} is read-only; nothing was stored: open it with write access")
    return StorageError(f"{path}: {error}")


def _connect(
    _: Dialect, __: ConnectionPoolEntry, parameters: Sequence[Any], options: Mapping[str, Any]
) -> sqlite3.Connection | None:
    path = Path(parameters[0])
    with suppress(OSError):
        if is_read_only(path):
            connection: sqlite3.Connection = sqlite3.connect(_read_only_uri(path), uri=True, **options)
            return connection
        # SQLite gives its other files the same mode.
        make_file(path)
    return None


def _read_only_uri(path: Path) -> str:
    """Return a URI that opens a file without creating other files. Raises StorageError if a log exists."""
    log, shared = (path.with_name(path.name + end) for end in ("-wal", "-shm"))
    if log.exists() and shared.exists():
        return f"{path.absolute().as_uri()}?mode=ro"
    if log.exists() and log.stat().st_size:
        raise StorageError(f"{path} is read-only and was not closed; open it once with write access")
    return f"{path.absolute().as_uri()}?immutable=1"


def _configure(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
    # The driver's implicit transactions would let reads see two states and hide DDL.
    connection.isolation_level = None
    for setting in SETTINGS:
        connection.cursor().execute(setting)


def _begin(connection: Connection) -> None:
    if connection.get_execution_options().get(INLINE, False):
        return
    writes = connection.get_execution_options().get(WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _refuse_nul(*call: Any) -> None:
    """Reject texts with a NUL, as other databases do."""
    *_, parameters, _, many = call
    for row in parameters if many else (parameters,):
        for value in row or ():
            if type(value) is str and NUL in value:
                raise InvalidInput("text", "holds a NUL, which cannot be stored")


def _in_wal(driver: sqlite3.Connection) -> bool:
    try:
        return bool(driver.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",))
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & _PRIMARY_CODE in _BUSY:
            return False
        raise


def _log_is_free(driver: sqlite3.Connection) -> bool:
    busy, _, _ = driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return not busy
