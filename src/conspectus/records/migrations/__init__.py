"""The history of the tables, run by Alembic; imported only when an upgrade is needed.

The tables change by migrations only: `0001` is frozen, and a test compares its sum. To change them:

1. If `tests/migration/stores/` has no store of the newest schema, make it: `python scripts/store_fixture.py`.
   Later versions open, upgrade and search it.
2. Change the tables in `records/tables/`, and set `VERSION` in `records/tables/core.py` to the next number. A
   new column is the last of its table. It has a `server_default` if it is not nullable, because old processes
   go on writing while new ones start.
3. Write `versions/NNNN_what_changes.py` with `op.add_column`, `op.create_table` and `op.create_index`, which
   work on both databases. `tests/migration` compares a migrated store with a new one, on SQLite and
   PostgreSQL.

A text column that is compared or ordered takes `String` or `Text` of `records/tables/core.py`, which have the
collation `C` on PostgreSQL.
"""

import sqlite3
from contextlib import closing
from importlib.resources import files
from typing import Final

from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy import Connection, inspect

from conspectus.errors import StorageError

FIRST_VERSION: Final = "0001"


def upgrade(connection: Connection, *, version: str) -> None:
    """Run the migrations up to `version` inside the connection's open transaction.

    Raises StorageError if no migration has the stored version.
    """
    config = Config()
    config.set_main_option("script_location", "conspectus.records:migrations")
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, version)
    except CommandError as fault:
        raise StorageError(f"the version of the records is damaged: {fault}; restore a backup") from fault


def has_first_schema(connection: Connection) -> bool:
    """Return whether the tables have the columns and indexes of version 0001.

    Stores that were written while that version was still being edited carry its number, and other tables.
    """
    script = files(__name__).joinpath("versions", f"{FIRST_VERSION}_initial.sqlite.sql").read_text("utf-8")
    with closing(sqlite3.connect(":memory:")) as database:
        database.executescript(script)
        tables = [name for (name,) in database.execute(_NAMES, ("table",))]
        indexes = {name for (name,) in database.execute(_NAMES, ("index",))}
        columns = {table: _column_names(database, table) for table in tables}
    schema = inspect(connection)
    if not columns.keys() <= set(schema.get_table_names()):
        return False
    stored = connection.exec_driver_sql(_INDEXES[connection.dialect.name]).scalars()
    return indexes <= set(stored) and all(
        {column["name"] for column in schema.get_columns(table)} == names for table, names in columns.items()
    )


_NAMES: Final = "SELECT name FROM sqlite_master WHERE type = ? AND name NOT LIKE 'sqlite@_%' ESCAPE '@'"
_INDEXES: Final = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'index'",
    "postgresql": "SELECT indexname FROM pg_indexes WHERE schemaname = current_schema()",
}


def _column_names(database: sqlite3.Connection, table: str) -> set[str]:
    return {row[1] for row in database.execute(f'PRAGMA table_info("{table}")')}
