"""The clock of the database, in microseconds since 1970."""

from typing import Any

from sqlalchemy import BigInteger
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.elements import SQLColumnExpression
from sqlalchemy.sql.functions import FunctionElement

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
    """Return the time that the clock of the database shows after a number of seconds."""
    return DatabaseTime() + round(seconds * MICROSECONDS)
