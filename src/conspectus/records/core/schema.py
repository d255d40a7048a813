"""Tables and their first rows in an empty database, and the version of those stored."""

from functools import cache
from operator import attrgetter

from sqlalchemy import (
    Column,
    Connection,
    Index,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    create_mock_engine,
    insert,
    inspect,
    text,
)
from sqlalchemy.schema import CreateIndex, CreateTable, ExecutableDDLElement

from conspectus.records.core.statements import PreparedStatement, execute_batch
from conspectus.records.tables.core import VERSION, counters, metadata

UNFINISHED = "unfinished move"
"""The stored version of a store that is being filled by a transfer."""

FIRST_COUNTER_VALUES = {"collection": "", "value": 0, "end": 2**63 - 1}
SHARED_COUNTERS = ("change", "chunk", "document", "alert_event", "graph_node", "graph_edge", "graph_event")

history = Table(
    "alembic_version",
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
"""The table in which Alembic stores the version of a database."""


def version_of(connection: Connection) -> str | None:
    """Return the version of the records in a database; None without records."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    stored: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return stored


def make_tables(connection: Connection) -> None:
    """Create all tables and their first rows inside the connection's open transaction."""
    execute_batch(
        connection, [PreparedStatement(sql) for sql in creation_statements(connection.dialect.name)]
    )
    connection.execute(insert(counters), [{"name": name, **FIRST_COUNTER_VALUES} for name in SHARED_COUNTERS])
    connection.execute(insert(history), {"version_num": VERSION})


@cache
def creation_statements(dialect: str) -> tuple[str, ...]:
    """Return the statements that create tables and indexes, in a fixed order, cached: compiling is slow."""
    database = create_mock_engine(f"{dialect}://", lambda *_: None).dialect
    definitions: list[ExecutableDDLElement] = []
    for table in (*metadata.sorted_tables, history):
        definitions.append(CreateTable(table))
        definitions += [_create_index(index) for index in sorted(table.indexes, key=attrgetter("name"))]
    return tuple(str(statement.compile(dialect=database)).strip() for statement in definitions)


def _create_index(index: Index) -> CreateIndex:
    """Return the statement of an index; its condition for SQLite holds for PostgreSQL as well."""
    condition = index.dialect_options["sqlite"]["where"]
    if condition is not None:
        # To declare it at the index would load the PostgreSQL dialect for every user of SQLite.
        index.dialect_options["postgresql"]["where"] = condition
    return CreateIndex(index)
