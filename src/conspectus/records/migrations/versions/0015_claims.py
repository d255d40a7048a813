"""Until when a request with an idempotency key is taken to be answered by the process that claimed it."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; a claim that was made before it existed has ended."""
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.add_column("replays", sa.Column("until", number, nullable=False, server_default="0"))
