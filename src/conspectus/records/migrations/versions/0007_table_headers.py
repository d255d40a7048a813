"""Chunks have the header rows of the table that they are in the middle of."""

import sqlalchemy as sa
from alembic import op

from conspectus.records.tables.core import Text

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column. Documents of an older version have no header until they are written again."""
    op.add_column("chunks", sa.Column("table_header", Text))
