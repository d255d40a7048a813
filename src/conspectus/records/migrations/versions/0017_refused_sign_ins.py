"""Subjects that nobody is mapped to are listed, and sessions are found by their identity."""

import sqlalchemy as sa
from alembic import op

from conspectus.records.tables.core import Number, String, Text

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table and the indexes; so far, no refusal is listed."""
    op.create_table(
        "refused_sign_ins",
        sa.Column("id", String, nullable=False),
        sa.Column("issuer", Text, nullable=False),
        sa.Column("subject", Text, nullable=False),
        sa.Column("first", Number, nullable=False),
        sa.Column("last", Number, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_refused_sign_ins"),
    )
    op.create_index("ix_refused_sign_ins_last", "refused_sign_ins", ["last"])
    op.create_index("ix_sessions_identity", "sessions", ["identity"])
    op.create_index("ix_sessions_issuer_session", "sessions", ["issuer_session"])
