"""Users have identities at issuers of tokens, and groups have members by claims of tokens."""

import sqlalchemy as sa
from alembic import op

from conspectus.records.tables.core import Number, String, Text

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create both tables, and note of each membership which issuer's claim it has; so far, none has."""
    op.create_table(
        "identities",
        sa.Column("id", String, nullable=False),
        sa.Column("issuer", Text, nullable=False),
        sa.Column("subject", Text, nullable=False),
        sa.Column("user", String, nullable=False),
        sa.Column("created", Number, nullable=False),
        sa.Column("last_issued", Number),
        sa.PrimaryKeyConstraint("id", name="pk_identities"),
        sa.ForeignKeyConstraint(["user"], ["users.id"], name="fk_identities_user_users", ondelete="CASCADE"),
    )
    op.create_index("ix_identities_user", "identities", ["user"])
    op.create_table(
        "group_claims",
        sa.Column("id", String, nullable=False),
        sa.Column("issuer", Text, nullable=False),
        sa.Column("claim", Text, nullable=False),
        sa.Column("group", String, nullable=False),
        sa.Column("created", Number, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_group_claims"),
        sa.ForeignKeyConstraint(
            ["group"], ["groups.id"], name="fk_group_claims_group_groups", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_group_claims_group", "group_claims", ["group"])
    op.add_column("members", sa.Column("issuer", Text))
