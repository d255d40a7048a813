"""SQL that differs between SQLite and PostgreSQL, list parameters, and direct use of drivers."""

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, ClassVar, Final, NamedTuple

from sqlalchemy import (
    BigInteger,
    ClauseElement,
    ColumnElement,
    Connection,
    Dialect,
    Select,
    String,
    Subquery,
    TableValuedAlias,
    bindparam,
    cast,
    column,
    func,
    literal,
    literal_column,
    select,
    text,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.elements import SQLColumnExpression
from sqlalchemy.sql.functions import FunctionElement

from conspectus.errors import StorageError

NUL = "\x00"


def is_storable(text: str) -> bool:
    """Return whether a database can store a text: not one with a NUL or a lone surrogate."""
    return NUL not in text and (text.isascii() or not any("\ud800" <= each <= "\udfff" for each in text))


def as_list(values: Iterable[str]) -> str:
    """Return texts as a parameter for `listed`. Texts that cannot be stored equal nothing stored."""
    return json.dumps([each for each in values if is_storable(each)])


def as_pairs(values: Mapping[str, int]) -> str:
    """Return texts with a number each as a parameter for `listed_with_numbers`."""
    return json.dumps([each for each in values.items() if is_storable(each[0])])


def total(column: ColumnElement[int]) -> ColumnElement[int]:
    """Return a sum as an integer; PostgreSQL's type for sums is numeric."""
    return cast(func.sum(column), BigInteger)


def listed(name: str) -> TableValuedAlias:
    """Return the texts of a parameter of `as_list` as rows with a `value`, in any number."""
    return _Listed(bindparam(name)).table_valued(column("value", String))


def listed_with_numbers(name: str) -> Subquery:
    """Return the items of a parameter of `as_pairs` as rows with a `value` and its `number`."""
    pair = _Pairs(bindparam(name)).table_valued(column("value", String)).c.value
    return select(_First(pair).label("value"), _Second(pair).label("number")).subquery("pairs")


def kind_of(text: ColumnElement[str], key: str) -> ColumnElement[str]:
    """Return the JSON type under a key of an object: true, text, object and so on; NULL without the key."""
    return _Kind(text, literal(key, literal_execute=True))


def members(text: ColumnElement[str], key: str) -> TableValuedAlias:
    """Return the elements of the list under a key of a JSON object, as rows for `text_of`."""
    return _Members(text, literal(key, literal_execute=True)).table_valued(
        column("value", String), column("type", String)
    )


def text_of(member: TableValuedAlias) -> ColumnElement[str]:
    """Return the text of a row of `members`; NULL if it is no text."""
    return _TextOf(member.c.value, member.c.type)


class _Construct(FunctionElement[Any]):
    """SQL for each database. The arguments replace the numbers."""

    sqlite: ClassVar[str]
    postgresql: ClassVar[str]


@compiles(_Construct)
def _written(element: _Construct, compiler: SQLCompiler, **more: Any) -> str:
    words = element.sqlite if compiler.dialect.name == "sqlite" else element.postgresql
    return words.format(*(compiler.process(each, **more) for each in element.clauses))


# PostgreSQL rejects JSON with an escaped NUL, which metadata may contain: it is stored as text.
_UNDER = r"(CAST(replace({0}, '\u0000', '\ufffd') AS json) -> {1})"


class _Listed(_Construct):
    inherit_cache = True
    sqlite = "json_each({0})"
    postgresql = "json_array_elements_text(CAST({0} AS json))"


class _Pairs(_Construct):
    inherit_cache = True
    sqlite = "json_each({0})"
    postgresql = "json_array_elements(CAST({0} AS json))"


class _First(_Construct):
    type = String()
    inherit_cache = True
    sqlite = "json_extract({0}, '$[0]')"
    postgresql = "({0} ->> 0)"


class _Second(_Construct):
    type = BigInteger()
    inherit_cache = True
    sqlite = "json_extract({0}, '$[1]')"
    postgresql = "CAST({0} ->> 1 AS bigint)"


class _Kind(_Construct):
    type = String()
    inherit_cache = True
    sqlite = "json_type({0}, '$.' || {1})"
    postgresql = (
        f"CASE json_typeof({_UNDER}) WHEN 'boolean' THEN CAST({_UNDER} AS text)"
        f" WHEN 'string' THEN 'text' ELSE json_typeof({_UNDER}) END"
    )


class _Members(_Construct):
    inherit_cache = True
    sqlite = "json_each({0}, '$.' || {1})"
    postgresql = (
        f"json_array_elements(CASE json_typeof({_UNDER}) WHEN 'array' THEN {_UNDER}"
        f" WHEN 'object' THEN (SELECT json_agg(each.value) FROM json_each({_UNDER}) AS each)"
        f" ELSE json_build_array({_UNDER}) END)"
    )


class _TextOf(_Construct):
    type = String()
    inherit_cache = True
    sqlite = "CASE {1} WHEN 'text' THEN {0} END"
    postgresql = "CASE json_typeof({0}) WHEN 'string' THEN {0} #>> '{{}}' END"


FEW: Final = 50
"""Up to this number of sources, each is read individually."""


def given(name: str) -> Select[Any]:
    """Return the texts of a parameter that is a JSON list: one parameter for any number of texts."""
    return select(listed(name).c.value)


def one_of(source: ColumnElement[str], name: str, *, by_name: bool) -> ColumnElement[bool]:
    """Return whether a source is in a parameter; with `by_name`, without using an index on it."""
    return (source.concat("") if by_name else source).in_(given(name))


def rare(column: ColumnElement[str], *conditions: ColumnElement[bool]) -> Select[Any]:
    """Return those of the names `ids` that have at most `many` rows."""
    wanted = listed("ids")
    beyond: Select[Any] = select(literal_column("1")).where(column == wanted.c.value, *conditions)
    return select(wanted.c.value).where(
        beyond.limit(literal_column("1")).offset(bindparam("many")).scalar_subquery().is_(None)
    )


def parted(
    connection: Connection,
    few_rows: Select[Any],
    names: Iterable[str],
    sources: Sequence[str],
    written: Callable[[Sequence[str]], str] = as_list,
    **more: str,
) -> Iterator[tuple[bool, Mapping[str, Any]]]:
    """Split the names in up to two parts, `ids` and `sources`, by the cheaper way to read them.

    `written` makes the parameter `ids` of names.

    Either the rows of a name are read, or the sources. One lookup per name and source is slow for thousands
    of conversations, and so is reading all rows of a frequent name.
    """
    asked = list(dict.fromkeys(names))
    of = {"sources": as_list(dict.fromkeys(sources)), **more}
    short: set[str] = set()
    if asked and len(sources) > FEW:
        rows = connection.execute(few_rows, {"ids": as_list(asked), "many": len(sources), **more})
        short = set(rows.scalars())
    for by_name in (True, False):
        part = [each for each in asked if (each in short) is by_name]
        if part:
            yield by_name, {"ids": written(part), **of}


MICROSECONDS = 1_000_000


class DatabaseTime(FunctionElement[int]):
    """Microseconds since 1970 by the clock of the database."""

    type = BigInteger()
    inherit_cache = True


@compiles(DatabaseTime, "postgresql")
def _in_postgresql(_element: DatabaseTime, _compiler: SQLCompiler, **_options: Any) -> str:
    return f"CAST(extract(epoch FROM clock_timestamp()) * {MICROSECONDS} AS bigint)"


@compiles(DatabaseTime, "sqlite")
def _in_sqlite(_element: DatabaseTime, _compiler: SQLCompiler, **_options: Any) -> str:
    return "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) * 1000"


def time_in(seconds: float) -> SQLColumnExpression[int]:
    """Return the time of the database in a number of seconds."""
    return DatabaseTime() + round(seconds * MICROSECONDS)


Row = tuple[Any, ...]


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


DIRECT: Final = "conspectus_direct"
"""The key of connections to PostgreSQL without a pooler. Each holds the lock of its process's session."""
_IS_ALIVE = text("""
SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted
AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
AND classid::bigint = :session >> 32 AND objid::bigint = :session & 4294967295)
""")


def is_session_alive(connection: Connection, session: int) -> bool:
    """Return whether any process has a connection to this database that holds the lock of the session."""
    return bool(connection.execute(_IS_ALIVE, {"session": session}).scalar_one())
