"""Consistent copies of SQLite databases, and checks of untrusted ones."""

import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import cache
from itertools import chain
from pathlib import Path
from urllib.parse import quote

from conspectus.errors import StorageBusy, StorageError, StorageTooNew
from conspectus.model.jobs import FINISHED
from conspectus.ports import Progress
from conspectus.records.core.schema import creation_statements
from conspectus.records.tables.core import VERSION
from conspectus.records.transfer.checksums import Sum, hash_in_parts

_TOKEN = re.compile(r"'[^']*'|\w+|[^\w\s]")
_STATISTICS = frozenset(
    {"CREATE TABLE sqlite_stat1(tbl,idx,stat)", "CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)"}
)
"""The tables of SQLite's ANALYZE."""


def is_expected(statement: str) -> bool:
    """Return whether a statement consists of nothing but the tokens of the statements of a store.

    These tokens are not sufficient for a view, a trigger, a virtual table, a call or a generated column, and
    their order does not matter.
    """
    return statement in _STATISTICS or _list_expected_tokens().issuperset(_TOKEN.findall(statement))


@cache
def _list_expected_tokens() -> frozenset[str]:
    return frozenset(
        word for statement in creation_statements("sqlite") for word in _TOKEN.findall(statement)
    )


PAGES_PER_STEP = 4_096
_WRITTEN_VERSION = re.compile(r"(?!0000)\d{4}", re.ASCII)
_SCHEMA = "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"
_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite@_%' ESCAPE '@'"


def copy_online(
    source: Path,
    target: Path,
    *,
    busy_seconds: float,
    at_moment: Callable[[], None],
    progress: Progress | None = None,
) -> None:
    """Copy a consistent snapshot of a database, while others read and write.

    Writers wait only during `at_moment`, which reads other files of the store at the same time.
    """
    with _errors(source), _opened(source, "rw", busy_seconds) as value, closing(_new(target)) as copy:
        with _opened(source, "rw", busy_seconds) as lock:
            lock.execute("BEGIN IMMEDIATE")
            value.execute("BEGIN")
            value.execute("SELECT count(*) FROM sqlite_master").fetchone()
            at_moment()
            lock.execute("ROLLBACK")

        def report(status: int, remaining: int, total: int) -> None:
            if progress is not None:
                progress("copying pages", total - remaining, total)

        value.backup(copy, pages=PAGES_PER_STEP, progress=report)
        value.execute("ROLLBACK")
        copy.execute("PRAGMA journal_mode = DELETE")


def list_unfinished_jobs(path: Path) -> Sequence[str]:
    """Return the unfinished jobs in a copy: only they need files."""
    with _errors(path), _opened(path, "rw", 0.0) as connection:
        rows = connection.execute("SELECT id, state FROM jobs").fetchall()
    return [job for job, state in rows if state not in FINISHED]


def check_copy(path: Path) -> tuple[str, Mapping[str, Sum]]:
    """Return the version of a copy, and the checksum of each table, if it is intact.

    The copy is untrusted: nothing in it is executed. Raises StorageError or StorageTooNew.
    """
    with _errors(path), _opened(path, "ro", 0.0) as connection:
        for setting in ("trusted_schema = OFF", "query_only = ON", "cell_size_check = ON"):
            connection.execute(f"PRAGMA {setting}")
        _require_sound(connection, path)
        return _version(connection, path), dict(_sums(connection))


def _require_sound(connection: sqlite3.Connection, path: Path) -> None:
    for name, statement in connection.execute(_SCHEMA):
        if not isinstance(statement, bytes) or not is_expected(statement.decode("utf-8", "replace")):
            raise StorageError(f"{path}: {name!r} is not a table or index of a store")
    pages = (row[0] for row in connection.execute("PRAGMA integrity_check") if row[0] != b"ok")
    broken = (b"a broken reference in " + row[0] for row in connection.execute("PRAGMA foreign_key_check"))
    for problem in chain(pages, broken):
        raise StorageError(f"{path} is damaged: {problem.decode('utf-8', 'replace')}")


def _version(connection: sqlite3.Connection, path: Path) -> str:
    row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    version = row[0].decode("utf-8", "replace") if row and isinstance(row[0], bytes) else ""
    if not _WRITTEN_VERSION.fullmatch(version):
        raise StorageError(
            f"{path} holds no store, or an unfinished transfer; name another folder, or run the move again"
        )
    if version > VERSION:
        raise StorageTooNew(str(path), version)
    return version


def _sums(connection: sqlite3.Connection) -> Iterator[tuple[str, Sum]]:
    names = [row[0].decode("utf-8", "replace") for row in connection.execute(_TABLES)]
    for name in sorted(names):
        quoted = name.replace('"', '""')
        checksum = Sum()
        for row in connection.execute(f'SELECT * FROM "{quoted}"'):
            checksum += Sum(1, hash_in_parts(row))
        yield name, checksum


@contextmanager
def _opened(path: Path, mode: str, seconds: float) -> Iterator[sqlite3.Connection]:
    still = "&immutable=1" if mode == "ro" else ""
    address = f"file:{quote(str(path))}?mode={mode}{still}"
    with closing(sqlite3.connect(address, uri=True, timeout=seconds, isolation_level=None)) as connection:
        if mode == "ro":
            connection.text_factory = bytes
        yield connection


def _new(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None)


@contextmanager
def _errors(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        if error.sqlite_errorname.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            raise StorageBusy(f"{path} is in use by another process: {error}") from error
        raise StorageError(f"{path}: {error}") from error
    except sqlite3.Error as error:
        raise StorageError(f"{path}: {error}") from error
