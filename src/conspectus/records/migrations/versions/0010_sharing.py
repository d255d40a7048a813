"""Whose turn work is, and how many requests each key has had this minute."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
STRING = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "leases",
        sa.Column("name", STRING, nullable=False),
        sa.Column("holder", STRING, nullable=False),
        sa.Column("fence", NUMBER, nullable=False),
        sa.Column("until", NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_leases"),
    )
    op.create_table(
        "allowances",
        sa.Column("name", STRING, nullable=False),
        sa.Column("minute", NUMBER, nullable=False),
        sa.Column("taken", NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_allowances"),
    )
