"""Edges have the key of their relation, which its spellings share.

Facts that a later one in another spelling supersedes are ended, as they would have been.
"""

import sqlalchemy as sa
from alembic import op

from conspectus.records.graph.relation_keys import fill_missing_keys
from conspectus.records.tables.core import String

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_COVERED = (
    ("ix_graph_edges_out", "source", "target"),
    ("ix_graph_edges_in", "target", "source"),
)
_WITHOUT_KEY = sa.text("type_key IS NULL")


def upgrade() -> None:
    """Add the column, fill it, and make the indexes that traversals by relation read."""
    op.add_column("graph_edges", sa.Column("type_key", String))
    op.drop_index("ix_graph_edges_source_aside_type", "graph_edges")
    op.create_index("ix_graph_edges_source_aside_type_key", "graph_edges", ["source", "aside", "type_key"])
    op.create_index(
        "ix_graph_edges_without_key",
        "graph_edges",
        ["type"],
        sqlite_where=_WITHOUT_KEY,
        postgresql_where=_WITHOUT_KEY,
    )
    for name, near, far in _COVERED:
        heaviest = sa.text("weight DESC")
        covered = [f"{far}_id", "type", "valid_from", "valid_until", far, "type_key"]
        op.drop_index(name, "graph_edges")
        op.create_index(name, "graph_edges", [near, "aside", heaviest, *covered])
    fill_missing_keys(op.get_bind())
