"""Which names passages mention."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "mentions",
        sa.Column("chunk", NUMBER, nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("surface", sa.Text(), nullable=False),
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("start", NUMBER, nullable=False),
        sa.Column("end", NUMBER, nullable=False),
        sa.Column("collection", sa.String(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("chunk", "key", name="pk_mentions"),
        sa.ForeignKeyConstraint(
            ["chunk"], ["chunks.id"], name="fk_mentions_chunk_chunks", ondelete="CASCADE"
        ),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "ix_mentions_collection_key_source_chunk_type",
        "mentions",
        ["collection", "key", "source", "chunk", "type"],
    )
