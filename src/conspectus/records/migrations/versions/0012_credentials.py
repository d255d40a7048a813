"""Connections have sealed credentials."""

import sqlalchemy as sa
from alembic import op

from conspectus.records.tables.core import Text

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; so far, no connection has credentials."""
    op.add_column("connections", sa.Column("credentials", Text))
