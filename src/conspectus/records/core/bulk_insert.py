"""Many new rows at once, by the quickest way that a database has."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Connection, Table, insert

FEW: Final = 8
"""So many rows are inserted as quickly one by one."""


def insert_rows(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows that name the same columns; PostgreSQL copies many of them in about a sixth of the time."""
    if connection.dialect.name == "postgresql" and len(rows) > FEW:
        _copy(connection, table, rows)
    elif rows:
        connection.execute(insert(table), list(rows))


def _copy(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    names = list(rows[0])
    quoting = connection.dialect.identifier_preparer
    columns = ", ".join(quoting.format_column(table.c[name]) for name in names)
    statement = f"COPY {quoting.format_table(table)} ({columns}) FROM STDIN"
    driver: Any = connection.connection.driver_connection
    with driver.cursor() as cursor, cursor.copy(statement) as copy:
        for row in rows:
            copy.write_row([row[name] for name in names])
