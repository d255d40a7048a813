"""Answers of chats while they are made, so that every process can go on with them."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
STRING = sa.String().with_variant(sa.String(collation="C"), "postgresql")
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "spoken",
        sa.Column("stream", STRING, nullable=False),
        sa.Column("person", STRING, nullable=False),
        sa.Column("documents", TEXT, nullable=False),
        sa.Column("frames", NUMBER, nullable=False),
        sa.Column("over", sa.Integer(), nullable=False),
        sa.Column("written", NUMBER, nullable=False),
        sa.Column("heard", NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("stream", name="pk_spoken"),
    )
    op.create_table(
        "spoken_frames",
        sa.Column("stream", STRING, nullable=False),
        sa.Column("number", NUMBER, nullable=False),
        sa.Column("frame", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("stream", "number", name="pk_spoken_frames"),
    )
