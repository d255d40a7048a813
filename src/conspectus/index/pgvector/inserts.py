"""Inserts of rows: a few by statements, many by COPY in binary format."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from psycopg.adapt import Dumper
from psycopg.pq import Format
from psycopg.types.numeric import Int4, Int8

from conspectus.index.pgvector.database import Rows

FEW = 16
"""Number of rows up to which single inserts are as fast as COPY."""


def insert_rows(
    cursor: Rows, table: str, kinds: Sequence[str], rows: Sequence[tuple[Any, ...]], names: Sequence[str]
) -> None:
    """Insert rows: a few by statements, which a pipeline may hold, and more by COPY, which it may not."""
    columns = f"{table} ({', '.join(names)})"
    if len(rows) <= FEW:
        statement = f"INSERT INTO {columns} VALUES ({', '.join(['%b'] * len(names))})"
        cursor.adapters.register_dumper(_Halfvec, _HalfvecDumper)
        for row in rows:
            cursor.execute(statement, [_cast(kind, cell) for kind, cell in zip(kinds, row, strict=True)])
        return
    with cursor.copy(f"COPY {columns} FROM STDIN (FORMAT BINARY)") as copy:
        copy.set_types(["bytea" if kind == "halfvec" else kind for kind in kinds])
        for row in rows:
            copy.write_row(row)


class _Halfvec(bytes):
    """A vector in the binary format of pgvector."""


class _HalfvecDumper(Dumper):
    """Sends the bytes as they are; the server knows the type from the column."""

    format = Format.BINARY

    def dump(self, obj: bytes) -> bytes:
        return obj


_TYPES: Mapping[str, Callable[[Any], Any]] = {
    "integer": Int4,
    "bigint": Int8,
    "halfvec": _Halfvec,
    "bigint[]": lambda numbers: [Int8(number) for number in numbers],
    "bytea": bytes,
}
"""Values whose types do not depend on their size, so that one prepared statement fits all."""


def _cast(kind: str, value: Any) -> Any:
    return None if value is None else _TYPES[kind](value)
