"""Connections have a state of access, and the sources of those without access are hidden."""

import sqlalchemy as sa
from alembic import op

from conspectus.records.tables.core import Number, String

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns, and the index of hidden sources."""
    op.add_column("connections", sa.Column("access", String, nullable=False, server_default="granted"))
    op.add_column("connections", sa.Column("access_since", Number))
    op.add_column("sources", sa.Column("hidden_from", Number))
    hidden = sa.text("hidden_from IS NOT NULL")
    columns = ["collection", "hidden_from"]
    op.create_index("ix_sources_hidden", "sources", columns, sqlite_where=hidden, postgresql_where=hidden)
