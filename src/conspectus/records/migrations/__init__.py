"""The history of the tables, run by Alembic; imported only when an upgrade is needed."""

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
