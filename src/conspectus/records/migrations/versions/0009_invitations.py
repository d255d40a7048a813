"""Sessions belong to users, with or without a key, and invitations let users without a key log in."""

import sqlalchemy as sa
from alembic import op

from conspectus.records.tables.core import Number, String, Text

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_SAVE = """
CREATE TABLE key_sessions AS
SELECT sessions.*, keys."user", keys.scopes, keys.origin FROM sessions JOIN keys ON keys.id = sessions.key
"""
_COPY = """
INSERT INTO sessions (id, "user", key, hash, scopes, origin, created, expires, last_used)
SELECT id, "user", key, hash, scopes, origin, created, expires, last_used FROM key_sessions
"""


def upgrade() -> None:
    """Make the table of sessions anew, with those that are open, and that of invitations."""
    op.execute(_SAVE)
    op.drop_table("sessions")
    op.create_table(
        "sessions",
        sa.Column("id", String, nullable=False),
        sa.Column("user", String, nullable=False),
        sa.Column("key", String),
        sa.Column("hash", String, nullable=False),
        sa.Column("scopes", Text, nullable=False),
        sa.Column("origin", String),
        sa.Column("created", Number, nullable=False),
        sa.Column("expires", Number, nullable=False),
        sa.Column("last_used", Number, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_sessions"),
        sa.ForeignKeyConstraint(["user"], ["users.id"], name="fk_sessions_user_users", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["key"], ["keys.id"], name="fk_sessions_key_keys", ondelete="CASCADE"),
    )
    op.execute(_COPY)
    op.drop_table("key_sessions")
    for column in ("user", "key", "expires"):
        op.create_index(f"ix_sessions_{column}", "sessions", [column])
    op.create_table(
        "invitations",
        sa.Column("id", String, nullable=False),
        sa.Column("user", String, nullable=False),
        sa.Column("hash", String, nullable=False),
        sa.Column("scopes", Text, nullable=False),
        sa.Column("created", Number, nullable=False),
        sa.Column("expires", Number, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_invitations"),
        sa.ForeignKeyConstraint(["user"], ["users.id"], name="fk_invitations_user_users", ondelete="CASCADE"),
    )
    for column in ("user", "expires"):
        op.create_index(f"ix_invitations_{column}", "invitations", [column])
