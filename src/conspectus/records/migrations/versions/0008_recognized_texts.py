"""Documents say how their text was read, and chunks of recognized pages where they stand on the page."""

import sqlalchemy as sa
from alembic import op

from conspectus.records.tables.core import String

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a column to both tables."""
    op.add_column("documents", sa.Column("read_by", String, nullable=False, server_default="text"))
    op.add_column("chunks", sa.Column("box", String))
