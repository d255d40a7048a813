"""Stores with rows in every table, and what is compared of two stores."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Column, Connection, Float, Integer, LargeBinary, Table, delete, insert, inspect, select

from conspectus.records.core.database import Database, DatabaseAccess, database_at
from conspectus.records.core.schema import SHARED_COUNTERS
from conspectus.records.tables.core import collections, metadata
from conspectus.records.tables.jobs import jobs

LETTERS = "Straße 日本語 \U0001f600 e\u0301 'quoted' \\ %s \x01\x7f"


@contextmanager
def database(address: str) -> Iterator[Database]:
    """The database at an address, released at the end."""
    opened = database_at(address, DatabaseAccess(busy_seconds=20, connections=4))
    opened.prepare()
    try:
        yield opened
    finally:
        opened.reading.dispose()


def fill(connection: Connection, *, rows: int = 3, start: int = 1) -> None:
    """Put `rows` rows into every table that there is, each with all its columns filled."""
    for table in metadata.sorted_tables:
        if table.name == "counters":
            if start == 1:
                connection.execute(delete(table))
                first = {"collection": "", "value": 10**9, "end": 2**63 - 1}
                connection.execute(insert(table), [{"name": n, **first} for n in SHARED_COUNTERS])
            continue
        new_rows = [_row(table, number) for number in range(start, start + rows)]
        connection.execute(insert(table), new_rows)


def keep_job(connection: Connection, job: str, state: str) -> None:
    """Put down a job in the first collection that there is."""
    collection = connection.execute(select(collections.c.id)).scalars().first()
    row = {**_row(jobs, 1), "id": job, "collection": collection, "state": state}
    connection.execute(insert(jobs), row)


def contents(connection: Connection, *, without: frozenset[str] = frozenset()) -> dict[str, list[Any]]:
    """All rows of every table that the database really has, by the names of their columns."""
    rows_by_table = {}
    for name in sorted(set(inspect(connection).get_table_names()) - without):
        rows = connection.exec_driver_sql(f'SELECT * FROM "{name}"').mappings()
        rows_by_table[name] = sorted((sorted(row.items()) for row in rows), key=repr)
    return rows_by_table


SHAPES = {
    "sqlite": ["SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_stat%'"],
    "postgresql": [
        "SELECT indexdef FROM pg_indexes WHERE schemaname = current_schema()",
        "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid <> 0"
        " AND connamespace = current_schema()::regnamespace",
        "SELECT table_name, column_name, data_type, collation_name, is_nullable, column_default"
        " FROM information_schema.columns WHERE table_schema = current_schema()",
    ],
}


def shape(connection: Connection) -> list[str]:
    """Tables, columns, constraints and indexes, as the database itself writes them."""
    query = SHAPES[connection.dialect.name]
    return sorted(str(row) for statement in query for row in connection.exec_driver_sql(statement))


def _row(table: Table, number: int) -> dict[str, Any]:
    return {column.name: _value(column, number) for column in table.columns}


def _value(column: Column[Any], number: int) -> Any:
    for key in column.foreign_keys:
        return _value(key.column, number)
    if isinstance(column.type, LargeBinary):
        return bytes(range(256)) + bytes([number % 256])
    if isinstance(column.type, Float):
        return number / 3
    if isinstance(column.type, Integer):
        return number
    return f"{column.table.name}-{column.name}-{number:06} {LETTERS}"
