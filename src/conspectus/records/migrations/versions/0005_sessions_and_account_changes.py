"""Browsers have sessions, and changes of users, groups, keys, grants and settings are noted."""

import sqlalchemy as sa
from alembic import op

from conspectus.records.tables.core import Number, String, Text

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create both tables."""
    op.create_table(
        "sessions",
        sa.Column("id", String, nullable=False),
        sa.Column("key", String, nullable=False),
        sa.Column("hash", String, nullable=False),
        sa.Column("created", Number, nullable=False),
        sa.Column("expires", Number, nullable=False),
        sa.Column("last_used", Number, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_sessions"),
        sa.ForeignKeyConstraint(["key"], ["keys.id"], name="fk_sessions_key_keys", ondelete="CASCADE"),
    )
    op.create_index("ix_sessions_key", "sessions", ["key"])
    op.create_index("ix_sessions_expires", "sessions", ["expires"])
    op.create_table(
        "account_changes",
        sa.Column("id", String, nullable=False),
        sa.Column("actor", String, nullable=False),
        sa.Column("actor_name", String, nullable=False),
        sa.Column("key", String),
        sa.Column("action", String, nullable=False),
        sa.Column("subject", String, nullable=False),
        sa.Column("subject_name", String, nullable=False),
        sa.Column("collection", String),
        sa.Column("detail", Text, nullable=False),
        sa.Column("created", Number, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_account_changes"),
    )
    op.create_index("ix_account_changes_created_id", "account_changes", ["created", "id"])
