"""Whose question a call to a model provider was for."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

STRING = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the column; of earlier calls nobody knows."""
    op.add_column("embedding_requests", sa.Column("user_id", STRING))
