"""Graphs: nodes, their names, edges, and what was merged by hand."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
STRING = sa.String().with_variant(sa.String(collation="C"), "postgresql")
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
ENDED = sa.text("closed_by IS NOT NULL")


def upgrade() -> None:
    """Add the tables."""
    _make_nodes()
    _make_words("graph_names", "key")
    _index("graph_names", "key", "graph")
    _make_words("graph_terms", "term")
    _make_edges()
    _make_evidence()
    _make_events()
    counters = sa.table("counters", sa.column("name"), sa.column("value"))
    counted = ("graph_node", "graph_edge", "graph_event")
    op.bulk_insert(counters, [{"name": name, "value": 0} for name in counted])


def _make_nodes() -> None:
    op.create_table(
        "graph_nodes",
        _number(),
        sa.Column("graph", STRING, nullable=False),
        sa.Column("id", STRING, nullable=False),
        _aside(),
        sa.Column("type", STRING, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("aliases", TEXT, nullable=False),
        sa.Column("merged", TEXT, nullable=False, server_default="[]"),
        sa.Column("properties", TEXT, nullable=False),
        *_times(),
        sa.Column("passing", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_graph_nodes"),
        sa.UniqueConstraint("graph", "id", "aside", name="uq_graph_nodes_graph_id_aside"),
        _reference("graph_nodes", "graph", "sources.id"),
    )
    _index("graph_nodes", "graph", "aside", "type", "id")
    _index("graph_nodes", "id", "graph")


def _make_words(table: str, word: str) -> None:
    op.create_table(
        table,
        sa.Column("graph", STRING, nullable=False),
        sa.Column(word, STRING, nullable=False),
        sa.Column("node", NUMBER, nullable=False),
        sa.Column("merge", NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("graph", word, "node", name=f"pk_{table}"),
        _reference(table, "node", "graph_nodes.number"),
        sqlite_with_rowid=False,
    )
    _index(table, "node")


def _make_edges() -> None:
    op.create_table(
        "graph_edges",
        _number(),
        sa.Column("graph", STRING, nullable=False),
        sa.Column("id", STRING, nullable=False),
        _aside(),
        sa.Column("source", NUMBER, nullable=False),
        sa.Column("target", NUMBER, nullable=False),
        sa.Column("source_id", STRING, nullable=False),
        sa.Column("target_id", STRING, nullable=False),
        sa.Column("type", STRING, nullable=False),
        sa.Column("weight", sa.Float(), nullable=False),
        sa.Column("properties", TEXT, nullable=False),
        *_times(),
        sa.Column("began", NUMBER, nullable=False),
        sa.Column("single", sa.Integer(), nullable=False),
        sa.Column("stands", sa.Integer(), nullable=False),
        sa.Column("closed_by", NUMBER),
        sa.PrimaryKeyConstraint("number", name="pk_graph_edges"),
        sa.UniqueConstraint("id", "aside", name="uq_graph_edges_id_aside"),
        _reference("graph_edges", "graph", "sources.id"),
        _reference("graph_edges", "source", "graph_nodes.number"),
        _reference("graph_edges", "target", "graph_nodes.number"),
        _reference("graph_edges", "closed_by", "graph_edges.number", then="SET NULL"),
    )
    _index("graph_edges", "graph", "aside")
    _index("graph_edges", "source", "aside", "type")
    op.create_index(
        "ix_graph_edges_closed_by", "graph_edges", ["closed_by"], sqlite_where=ENDED, postgresql_where=ENDED
    )
    for name, near, far in (("out", "source", "target"), ("in", "target", "source")):
        _index_by_weight(name, near, far)


def _index_by_weight(name: str, near: str, far: str) -> None:
    heaviest_first: list[str | sa.TextClause] = [near, "aside", sa.text("weight DESC"), f"{far}_id", "type"]
    rest = ["valid_from", "valid_until", far]
    op.create_index(f"ix_graph_edges_{name}", "graph_edges", [*heaviest_first, *rest])


def _make_evidence() -> None:
    op.create_table(
        "graph_evidence",
        _number(),
        sa.Column("edge", NUMBER, nullable=False),
        sa.Column("document", STRING, nullable=False),
        sa.Column("merge", NUMBER, nullable=False, server_default="0"),
        sa.PrimaryKeyConstraint("number", name="pk_graph_evidence"),
        sa.UniqueConstraint("edge", "document", name="uq_graph_evidence_edge_document"),
        _reference("graph_evidence", "edge", "graph_edges.number"),
        _reference("graph_evidence", "document", "documents.id"),
    )
    _index("graph_evidence", "document")


def _make_events() -> None:
    op.create_table(
        "graph_events",
        _number(),
        sa.Column("graph", STRING, nullable=False),
        sa.Column("kind", STRING, nullable=False),
        sa.Column("at", NUMBER, nullable=False),
        sa.Column("by", STRING, nullable=False),
        sa.Column("before", TEXT, nullable=False),
        sa.Column("after", TEXT, nullable=False),
        sa.Column("reason", TEXT, nullable=False),
        sa.Column("undone", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_graph_events"),
        _reference("graph_events", "graph", "sources.id"),
    )
    _index("graph_events", "graph", "number")
    op.create_table(
        "graph_moves",
        sa.Column("event", NUMBER, nullable=False),
        sa.Column("edge", NUMBER, nullable=False),
        sa.Column("source", NUMBER, nullable=False),
        sa.Column("target", NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("event", "edge", name="pk_graph_moves"),
        _reference("graph_moves", "event", "graph_events.number"),
        _reference("graph_moves", "edge", "graph_edges.number"),
        sqlite_with_rowid=False,
    )
    _index("graph_moves", "edge")


def _number() -> sa.Column[int]:
    return sa.Column("number", NUMBER, autoincrement=False, nullable=False)


def _aside() -> sa.Column[int]:
    return sa.Column("aside", NUMBER, nullable=False, server_default="0")


def _times() -> list[sa.Column[int]]:
    told = [sa.Column(name, NUMBER, nullable=False) for name in ("recorded", "updated")]
    return [*told, sa.Column("valid_from", NUMBER), sa.Column("valid_until", NUMBER)]


def _index(table: str, *columns: str) -> None:
    op.create_index(f"ix_{table}_{'_'.join(columns)}", table, list(columns))


def _reference(table: str, column: str, target: str, *, then: str = "CASCADE") -> sa.ForeignKeyConstraint:
    name = f"fk_{table}_{column}_{target.split('.', maxsplit=1)[0]}"
    return sa.ForeignKeyConstraint([column], [target], name=name, ondelete=then)
