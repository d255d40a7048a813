"""Indexes that SQLite chooses whatever the order in which they were made, as it has no statistics."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make two indexes anew that an index of all documents could be preferred to."""
    _remake("ix_documents_pending", ["collection", "status", "last_chunk"], "status = 'pending'")
    _remake("ix_documents_parent", ["parent", "collection", "recorded", "id"], "parent IS NOT NULL")


def _remake(name: str, columns: list[str], condition: str) -> None:
    where = sa.text(condition)
    op.drop_index(name, "documents")
    op.create_index(name, "documents", columns, sqlite_where=where, postgresql_where=where)
