"""Memories: their order, their versions, what was deleted of them, and how long they stay."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
STRING = sa.String().with_variant(sa.String(collation="C"), "postgresql")
REMEMBERED = sa.text("kind = 'memory'")
VERSIONED = sa.text("kind = 'version'")


def upgrade() -> None:
    """Add the columns, the indexes and the tables."""
    op.add_column("collections", sa.Column("names_to", NUMBER))
    _index("remembered", ["source", "order_start", "number"], REMEMBERED)
    _index("stored", ["source", "number"], REMEMBERED)
    _index("versions", ["collection", "source"], VERSIONED)
    op.create_table(
        "deleted_memories",
        sa.Column("document", STRING, nullable=False),
        sa.Column("source", STRING, nullable=False),
        sa.Column("recorded", NUMBER, nullable=False),
        sa.Column("deleted", NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("document", name="pk_deleted_memories"),
        _reference("deleted_memories", "source", "sources.id"),
    )
    op.create_index("ix_deleted_memories_source_deleted", "deleted_memories", ["source", "deleted"])
    op.create_table(
        "retentions",
        sa.Column("id", STRING, nullable=False),
        sa.Column("collection", STRING, nullable=False),
        sa.Column("begins", STRING, nullable=False),
        sa.Column("days", sa.Float()),
        sa.Column("most", NUMBER),
        sa.Column("owner", STRING, nullable=False),
        sa.Column("ran", NUMBER),
        sa.PrimaryKeyConstraint("id", name="pk_retentions"),
        _reference("retentions", "collection", "collections.id"),
    )
    op.create_index("ix_retentions_collection_begins", "retentions", ["collection", "begins"])


def _index(name: str, columns: list[str], where: sa.TextClause) -> None:
    op.create_index(f"ix_documents_{name}", "documents", columns, sqlite_where=where, postgresql_where=where)


def _reference(table: str, column: str, target: str) -> sa.ForeignKeyConstraint:
    name = f"fk_{table}_{column}_{target.split('.', maxsplit=1)[0]}"
    return sa.ForeignKeyConstraint([column], [target], name=name, ondelete="CASCADE")
