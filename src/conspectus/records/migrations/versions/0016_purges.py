"""Purges that have not ended; frames of chats go with the chat they belong to."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
STRING = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the table of purges, and replace that of frames, which are kept for minutes."""
    op.create_table(
        "purges",
        sa.Column("id", STRING, nullable=False),
        sa.Column("collection", STRING, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_purges"),
    )
    op.execute("DELETE FROM spoken")
    op.drop_table("spoken_frames")
    op.create_table(
        "spoken_frames",
        sa.Column("stream", STRING, nullable=False),
        sa.Column("number", NUMBER, nullable=False),
        sa.Column("frame", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("stream", "number", name="pk_spoken_frames"),
        sa.ForeignKeyConstraint(
            ["stream"], ["spoken.stream"], name="fk_spoken_frames_stream_spoken", ondelete="CASCADE"
        ),
    )
