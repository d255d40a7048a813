"""The captions and events of a stream in the order of time."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

SEEN = sa.text("kind IN ('caption', 'event')")


def upgrade() -> None:
    """Add the indexes that ranges of a stream are read by."""
    op.create_index(
        "ix_documents_timeline",
        "documents",
        ["source", "occurred_start", "occurred_end", "order_sequence", "key", "kind"],
        sqlite_where=SEEN,
        postgresql_where=SEEN,
    )
    op.create_index(
        "ix_documents_longest",
        "documents",
        ["source", sa.text("(occurred_end - occurred_start)")],
        sqlite_where=SEEN,
        postgresql_where=SEEN,
    )
