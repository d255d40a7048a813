"""The executor of statements: constants by the driver itself, lists of ids in blocks, and rows to insert.

A constant statement of a module is compiled once and then given to the driver. In SQLite an indexed read of
one value takes 3 microseconds that way, and 46 by `Connection.execute`. SQLAlchemy runs the other ones:

- Statements that are composed for the call. Compiling them is their cost, whoever runs them.
- Statements with expanding parameters, whose SQL depends on the number of values.
- Changes whose number of rows is read, and rows whose columns are read by name.
- Statements for the administration of a database (PRAGMA, GRANT, VACUUM), by `exec_driver_sql`. They have no
  parameters, run seldom, and must not be prepared.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar

from sqlalchemy import BindParameter, ClauseElement, Connection, Dialect, Executable, Table, bindparam
from sqlalchemy.sql.compiler import SQLCompiler

from conspectus.errors import StorageError

Row = tuple[Any, ...]
Element = TypeVar("Element")

MAX_BLOCK_VALUES: Final = 5_000
"""Maximum number of values in one statement."""
MAX_SINGLE_INSERT_ROWS: Final = 8
"""Number of rows up to which one statement with all values is as fast."""
NO_PARAMETERS: Final[Mapping[str, Any]] = MappingProxyType({})
IDS: BindParameter[Any] = bindparam("ids", expanding=True)
"""Any number of ids as a parameter of a statement; `fetch_in_blocks` and `execute_in_blocks` give them."""


class PreparedStatement(NamedTuple):
    """A statement for a driver, with the values of its parameters."""

    sql: str
    values: Sequence[Any] | Mapping[str, Any] = ()


def prepare(
    connection: Connection, statement: ClauseElement, parameters: Mapping[str, Any]
) -> PreparedStatement:
    """Return a constant statement of a module with the values of its parameters.

    Expanding parameters are not supported.
    """
    sql, names, constants = _compile(statement, _dialect_class(connection))
    values = {**constants, **parameters}
    return PreparedStatement(sql, values if names is None else [values[name] for name in names])


def execute_batch(connection: Connection, statements: Sequence[PreparedStatement]) -> list[list[Row]]:
    """Run statements in order, and return the rows of each. PostgreSQL receives all before it answers.

    Event listeners of SQLAlchemy are called for these statements too.
    """
    if not statements:
        return []
    driver: Any = connection.connection.driver_connection
    for listen in connection.dispatch.before_cursor_execute:
        for sql, values in statements:
            listen(connection, None, sql, values, None, False)
    if isinstance(driver, sqlite3.Connection):
        return [driver.execute(sql, values).fetchall() for sql, values in statements]
    if len(statements) == 1:
        return [_rows(driver.execute(*statements[0]))]
    with driver.pipeline():
        cursors = [driver.execute(sql, values) for sql, values in statements]
    return list(map(_rows, cursors))


def fetch_rows(connection: Connection, statement: ClauseElement, parameters: Mapping[str, Any]) -> list[Row]:
    """Return the rows of a constant statement of a module."""
    return execute_batch(connection, [prepare(connection, statement, parameters)])[0]


def fetch_scalar(
    connection: Connection, statement: ClauseElement, parameters: Mapping[str, Any] = NO_PARAMETERS
) -> Any:
    """Return the first value of a constant statement of a module, None without rows."""
    rows = fetch_rows(connection, statement, parameters)
    return rows[0][0] if rows else None


def _rows(cursor: Any) -> list[Row]:
    # The driver makes its description anew each time.
    rows: list[Row] = cursor.fetchall() if cursor.pgresult.nfields else []
    return rows


def _dialect_class(connection: Connection) -> Callable[[], Dialect]:
    """Return the class of the dialect: the key of caches, as all stores with a driver share statements."""
    return type(connection.dialect)


@cache
def _compile(
    statement: ClauseElement, dialect_class: Callable[[], Dialect]
) -> tuple[str, Sequence[str] | None, Mapping[str, Any]]:
    """Return the statement, its parameters by position (None: by name), and those with fixed values."""
    compiled = statement.compile(dialect=dialect_class())
    if not isinstance(compiled, SQLCompiler):
        raise StorageError("the statement reads and writes no rows; report it")
    names = compiled.positiontup if compiled.positional else None
    return str(compiled), names, compiled.params


def blocks(elements: Sequence[Element]) -> list[Sequence[Element]]:
    """Split a sequence so that each part fits into the parameters of one statement."""
    return [elements[start : start + MAX_BLOCK_VALUES] for start in range(0, len(elements), MAX_BLOCK_VALUES)]


def fetch_in_blocks(
    connection: Connection, statement: Executable, ids: Iterable[Any], **parameters: Any
) -> Iterator[Any]:
    """Yield the rows of a statement for all these `IDS`."""
    for block in blocks(list(ids)):
        yield from connection.execute(statement, {**parameters, "ids": block})


def execute_in_blocks(
    connection: Connection, statement: Executable, ids: Iterable[Any], **parameters: Any
) -> int:
    """Run a statement for all these `IDS`. Returns the number of its rows."""
    return sum(
        connection.execute(statement, {**parameters, "ids": block}).rowcount for block in blocks(list(ids))
    )


def insert_rows(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows with equal column names.

    PostgreSQL uses COPY for many rows, which takes about a sixth of the time.
    """
    execute_batch(connection, prepare_inserts(connection, table, rows))


def prepare_inserts(
    connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]
) -> list[PreparedStatement]:
    """Return statements that insert rows; many rows are inserted at once, and nothing is returned."""
    if not rows:
        return []
    names = tuple(rows[0])
    if len(rows) <= MAX_SINGLE_INSERT_ROWS:
        statement = _insertion(table, names, _dialect_class(connection), rows=len(rows))
        return [PreparedStatement(statement, [row[name] for row in rows for name in names])]
    if connection.dialect.name == "postgresql":
        _copy(connection, table, rows)
    else:
        values = [tuple(row[name] for name in names) for row in rows]
        connection.exec_driver_sql(_insertion(table, names, _dialect_class(connection)), values)
    return []


@cache
def _insertion(
    table: Table, names: tuple[str, ...], dialect_class: Callable[[], Dialect], *, rows: int = 1
) -> str:
    dialect = dialect_class()
    quoting = dialect.identifier_preparer
    columns = ", ".join(quoting.format_column(table.c[name]) for name in names)
    placeholders = ", ".join(["%s" if dialect.name == "postgresql" else "?"] * len(names))
    values = ", ".join([f"({placeholders})"] * rows)
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
