"""Whether anything was stored for a request whose answer is to be kept."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column."""
    op.add_column("replays", sa.Column("stored", sa.Integer(), nullable=False, server_default="0"))
