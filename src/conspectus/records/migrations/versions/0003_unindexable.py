"""Chunks and documents have the reason why their text cannot be analyzed."""

import sqlalchemy as sa
from alembic import op

from conspectus.records.tables.core import String

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns, and the index of documents that have such chunks."""
    for table in ("chunks", "documents"):
        op.add_column(table, sa.Column("unindexable", String))
    marked = sa.text("unindexable IS NOT NULL")
    columns = ["collection", "number"]
    op.create_index(
        "ix_documents_unindexable", "documents", columns, sqlite_where=marked, postgresql_where=marked
    )
