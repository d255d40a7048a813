"""Which names passages mention."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
STRING = sa.String().with_variant(sa.String(collation="C"), "postgresql")
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "mentions",
        sa.Column("chunk", NUMBER, nullable=False),
        sa.Column("key", STRING, nullable=False),
        sa.Column("surface", TEXT, nullable=False),
        sa.Column("type", STRING, nullable=False),
        sa.Column("start", NUMBER, nullable=False),
        sa.Column("end", NUMBER, nullable=False),
        sa.Column("collection", STRING, nullable=False),
        sa.Column("source", STRING, nullable=False),
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
