"""The newest documents of a source by event time, found without reading the others."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

DATED = sa.text("occurred_start IS NOT NULL AND chunks > 0")


def upgrade() -> None:
    """Add the index that a channel's latest messages are read by."""
    op.create_index(
        "ix_documents_latest",
        "documents",
        ["source", "order_start", "id"],
        sqlite_where=DATED,
        postgresql_where=DATED,
    )
