"""Statements run by the driver itself, several in one round trip."""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, Final, NamedTuple, TypeVar

from sqlalchemy import BindParameter, ClauseElement, Connection, Dialect, Executable, Table, bindparam
from sqlalchemy.sql.compiler import SQLCompiler

from conspectus.errors import StorageError

Row = tuple[Any, ...]
Item = TypeVar("Item")


class Ready(NamedTuple):
    """A statement for a driver, with its values."""

    sql: str
    values: Sequence[Any] | Mapping[str, Any]


def ready(connection: Connection, statement: ClauseElement, given: Mapping[str, Any]) -> Ready:
    """Return a constant statement of a module with its values. Expanding parameters are not supported."""
    written, names, constants = _compiled(statement, connection.dialect)
    values = {**constants, **given}
    return Ready(written, values if names is None else [values[name] for name in names])


def plain_rows(connection: Connection, statement: ClauseElement, given: Mapping[str, Any]) -> list[Row]:
    """Return rows from the driver, three times as fast. The statement must be a constant of its module."""
    return run_all(connection, [ready(connection, statement, given)])[0]


def run_all(connection: Connection, statements: Sequence[Ready]) -> list[list[Row]]:
    """Run statements in order. PostgreSQL receives all of them before it answers.

    Event listeners of SQLAlchemy are called for these statements too.
    """
    if not statements:
        return []
    driver: Any = connection.connection.driver_connection
    for listen in connection.dispatch.before_cursor_execute:
        for sql, values in statements:
            listen(connection, None, sql, values, None, False)
    if isinstance(driver, sqlite3.Connection):
        return [driver.execute(*each).fetchall() for each in statements]
    if len(statements) == 1:
        return [_rows(driver.execute(*statements[0]))]
    with driver.pipeline():
        cursors = [driver.execute(*each) for each in statements]
    return list(map(_rows, cursors))


def pipelined(connection: Connection) -> AbstractContextManager[object]:
    """Return a block whose statements PostgreSQL receives before it answers."""
    driver: Any = connection.connection.driver_connection
    pipeline: AbstractContextManager[object] = driver.pipeline()
    return pipeline


def sqlite_driver(connection: Connection) -> sqlite3.Connection:
    """Return the connection of the driver."""
    driver = connection.connection.driver_connection
    if not isinstance(driver, sqlite3.Connection):
        raise StorageError("the database is not SQLite")
    return driver


def _rows(cursor: Any) -> list[Row]:
    # The driver makes its description anew each time.
    found: list[Row] = cursor.fetchall() if cursor.pgresult.nfields else []
    return found


@cache
def _compiled(
    statement: ClauseElement, dialect: Dialect
) -> tuple[str, Sequence[str] | None, Mapping[str, Any]]:
    """Return the statement, its parameters by position (None: by name), and those with fixed values."""
    compiled = statement.compile(dialect=dialect)
    if not isinstance(compiled, SQLCompiler):
        raise StorageError("the statement is none of rows")
    names = compiled.positiontup if compiled.positional else None
    return str(compiled), names, compiled.params


BLOCK = 5_000
"""Maximum number of values in one statement."""

IDS: BindParameter[Any] = bindparam("ids", expanding=True)
"""Any number of ids as a parameter of a statement; `rows_in` and `run_in` give them in blocks."""


def blocks(items: Sequence[Item]) -> list[Sequence[Item]]:
    """Split items so that each part fits into the parameters of one statement."""
    return [items[start : start + BLOCK] for start in range(0, len(items), BLOCK)]


def rows_in(connection: Connection, statement: Executable, ids: Iterable[Any], **given: Any) -> Iterator[Any]:
    """Yield the rows of a statement for all these `IDS`."""
    for block in blocks(list(ids)):
        yield from connection.execute(statement, {**given, "ids": block})


def run_in(connection: Connection, statement: Executable, ids: Iterable[Any], **given: Any) -> int:
    """Run a statement for all these `IDS`. Returns the number of its rows."""
    return sum(connection.execute(statement, {**given, "ids": block}).rowcount for block in blocks(list(ids)))


FEW: Final = 8
"""Number of rows up to which one statement with all values is as fast."""


def insert_rows(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows with equal column names.

    PostgreSQL uses COPY for many rows, which takes about a sixth of the time.
    """
    run_all(connection, inserts(connection, table, rows))


def inserts(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> list[Ready]:
    """Return statements that insert rows; many rows are inserted at once, and nothing is returned."""
    if not rows:
        return []
    names = tuple(rows[0])
    if len(rows) <= FEW:
        statement = _insertion(table, names, connection.dialect, rows=len(rows))
        return [Ready(statement, [row[name] for row in rows for name in names])]
    if connection.dialect.name == "postgresql":
        _copy(connection, table, rows)
    else:
        values = [tuple(row[name] for name in names) for row in rows]
        connection.exec_driver_sql(_insertion(table, names, connection.dialect), values)
    return []


@cache
def _insertion(table: Table, names: tuple[str, ...], dialect: Dialect, *, rows: int = 1) -> str:
    quoting = dialect.identifier_preparer
    columns = ", ".join(quoting.format_column(table.c[name]) for name in names)
    places = ", ".join(["%s" if dialect.name == "postgresql" else "?"] * len(names))
    values = ", ".join([f"({places})"] * rows)
    return f"INSERT INTO {quoting.format_table(table)} ({columns}) VALUES {values}"


def _copy(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    names = list(rows[0])
    quoting = connection.dialect.identifier_preparer
    columns = ", ".join(quoting.format_column(table.c[name]) for name in names)
    statement = f"COPY {quoting.format_table(table)} ({columns}) FROM STDIN"
    driver: Any = connection.connection.driver_connection
    with driver.cursor() as cursor, cursor.copy(statement) as copy:
        for row in rows:
            copy.write_row([row[name] for name in names])
