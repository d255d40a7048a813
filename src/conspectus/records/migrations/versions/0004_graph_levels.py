"""Nodes and edges of graphs have an origin and a trust level.

Nobody recorded who wrote the earlier ones, so they are `standard`, as imported lines without a level. Facts
have the lowest level of the documents that state them, and nodes that exist for facts that of these.
"""

import sqlalchemy as sa
from alembic import op

from conspectus.records.tables.core import String

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_RANK = "CASE {0}.trust WHEN 'quarantined' THEN 3 WHEN 'untrusted' THEN 2 WHEN 'standard' THEN 1 ELSE 0 END"
_LOWEST_DOCUMENT = f"""
    FROM graph_evidence JOIN documents ON documents.id = graph_evidence.document
    WHERE graph_evidence.edge = graph_edges.number
    ORDER BY {_RANK.format("documents")} DESC LIMIT 1
"""
_LOWEST_EDGE = f"""
    FROM graph_edges
    WHERE graph_edges.source = graph_nodes.number OR graph_edges.target = graph_nodes.number
    ORDER BY {_RANK.format("graph_edges")} DESC LIMIT 1
"""
_STEPS = (
    f"""
    UPDATE graph_edges SET
        origin = (SELECT documents.origin {_LOWEST_DOCUMENT}),
        trust = (SELECT CASE documents.trust WHEN 'quarantined' THEN 'untrusted' ELSE documents.trust END
            {_LOWEST_DOCUMENT})
    WHERE EXISTS (SELECT 1 FROM graph_evidence WHERE graph_evidence.edge = graph_edges.number)
    """,
    "UPDATE graph_edges SET origin = 'import', trust = 'standard' WHERE stands = 1 AND trust = 'trusted'",
    f"""
    UPDATE graph_nodes SET origin = (SELECT graph_edges.origin {_LOWEST_EDGE}),
        trust = (SELECT graph_edges.trust {_LOWEST_EDGE})
    WHERE passing = 1 AND EXISTS (SELECT 1 {_LOWEST_EDGE})
    """,
)


def upgrade() -> None:
    """Add the columns, and derive the levels of facts."""
    for table in ("graph_nodes", "graph_edges"):
        op.add_column(table, sa.Column("origin", String, nullable=False, server_default="import"))
        op.add_column(table, sa.Column("trust", String, nullable=False, server_default="standard"))
    for step in _STEPS:
        op.execute(step)
