"""Making a new database as the newest migration leaves one, without running them one after the other."""

from functools import cache
from operator import attrgetter

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
from sqlalchemy.schema import CreateIndex, CreateTable, ExecutableDDLElement

from conspectus.records.tables.core import VERSION, counters, metadata

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
    """What makes the tables and their indexes, always in one order; compiling takes longer than running."""
    database = create_mock_engine(f"{dialect}://", lambda *_: None).dialect
    made: list[ExecutableDDLElement] = []
    for table in (*metadata.sorted_tables, history):
        made += [CreateTable(table), *map(CreateIndex, sorted(table.indexes, key=attrgetter("name")))]
    return tuple(str(statement.compile(dialect=database)).strip() for statement in made)
