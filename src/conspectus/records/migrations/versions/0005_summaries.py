"""Summaries of stretches of streams, with what each was made of."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
STRING = sa.String().with_variant(sa.String(collation="C"), "postgresql")
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "summaries",
        sa.Column("id", STRING, nullable=False),
        sa.Column("source", STRING, nullable=False),
        sa.Column("recipe", STRING, nullable=False),
        sa.Column("text", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_summaries"),
        _reference("summaries", "source", "sources.id"),
    )
    op.create_index("ix_summaries_source_recipe", "summaries", ["source", "recipe"])
    op.create_table(
        "summary_captions",
        sa.Column("summary", STRING, nullable=False),
        sa.Column("document", NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("summary", "document", name="pk_summary_captions"),
        _reference("summary_captions", "summary", "summaries.id"),
        _reference("summary_captions", "document", "documents.number"),
    )
    op.create_index("ix_summary_captions_document", "summary_captions", ["document"])
    op.create_table(
        "summary_parts",
        sa.Column("summary", STRING, nullable=False),
        sa.Column("part", STRING, nullable=False),
        sa.PrimaryKeyConstraint("summary", "part", name="pk_summary_parts"),
        _reference("summary_parts", "summary", "summaries.id"),
        _reference("summary_parts", "part", "summaries.id"),
    )
    op.create_index("ix_summary_parts_part", "summary_parts", ["part"])
    _make_borders()
    _make_standing()


def _make_borders() -> None:
    op.create_table(
        "summary_borders",
        sa.Column("source", STRING, nullable=False),
        sa.Column("recipe", STRING, nullable=False),
        sa.Column("first", sa.Float(), nullable=False),
        sa.Column("first_id", STRING, nullable=False),
        sa.Column("last", sa.Float(), nullable=False),
        sa.Column("last_id", STRING, nullable=False),
        sa.Column("full", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("source", "recipe", "first", "first_id", name="pk_summary_borders"),
        _reference("summary_borders", "source", "sources.id"),
    )


def _make_standing() -> None:
    op.create_table(
        "standing_summaries",
        sa.Column("source", STRING, nullable=False),
        sa.Column("owner", STRING, nullable=False),
        sa.Column("request", TEXT, nullable=False),
        sa.Column("since", NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("source", name="pk_standing_summaries"),
        _reference("standing_summaries", "source", "sources.id"),
    )


def _reference(table: str, column: str, target: str) -> sa.ForeignKeyConstraint:
    name = f"fk_{table}_{column}_{target.partition('.')[0]}"
    return sa.ForeignKeyConstraint([column], [target], name=name, ondelete="CASCADE")
