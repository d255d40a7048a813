"""Making a new database as the newest migration leaves one, without running them one after the other."""

from functools import cache
from typing import Any

from sqlalchemy import (
    Column,
    Connection,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    create_mock_engine,
    insert,
)

from conspectus.records import (
    account_tables,
    alert_tables,
    graph_tables,
    job_file_tables,
    job_tables,
    memory_tables,
    name_tables,
    shared_tables,
    spoken_tables,
    summary_tables,
)
from conspectus.records.tables import VERSION, counters, schema

EVERY = (
    account_tables,
    alert_tables,
    graph_tables,
    job_file_tables,
    job_tables,
    memory_tables,
    name_tables,
    shared_tables,
    spoken_tables,
    summary_tables,
)
"""Importing a module of tables adds them to the schema."""

COUNTED = ("change", "chunk", "document", "alert_event", "graph_node", "graph_edge", "graph_event")

history = Table(
    "alembic_version",
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
"""Where Alembic looks for the version of a database, as it makes it."""


def make(connection: Connection) -> None:
    """Make every table and its first rows inside the connection's open transaction."""
    for statement in statements(connection.dialect.name):
        connection.exec_driver_sql(statement)
    connection.execute(insert(counters), [{"name": name, "value": 0} for name in COUNTED])
    connection.execute(insert(history), {"version_num": VERSION})


@cache
def statements(dialect: str) -> tuple[str, ...]:
    """What makes the tables and their indexes; compiling it takes longer than running it."""
    made: list[str] = []

    def keep(statement: Any, *_: Any, **__: Any) -> None:
        made.append(str(statement.compile(dialect=database.dialect)))

    database = create_mock_engine(f"{dialect}://", keep)
    schema.create_all(database, checkfirst=False)
    history.create(database, checkfirst=False)
    return tuple(made)
