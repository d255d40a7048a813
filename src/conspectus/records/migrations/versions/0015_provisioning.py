"""Users and groups may be managed by an identity provider, which has names of its own for them."""

import sqlalchemy as sa
from alembic import op

from conspectus.records.tables.core import Number, String, Text

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create both tables; so far, people made all users and groups."""
    for subject, columns in (
        ("user", ("user_name", "name_key", "active")),
        ("group", ("display_name",)),
    ):
        table = f"provisioned_{subject}s"
        op.create_table(
            table,
            sa.Column(subject, String, nullable=False),
            *(sa.Column(name, Number if name == "active" else Text, nullable=False) for name in columns),
            sa.Column("external_id", Text),
            sa.Column("modified", Number, nullable=False),
            sa.PrimaryKeyConstraint(subject, name=f"pk_{table}"),
            sa.ForeignKeyConstraint(
                [subject], [f"{subject}s.id"], name=f"fk_{table}_{subject}_{subject}s", ondelete="CASCADE"
            ),
            *(sa.UniqueConstraint(name, name=f"uq_{table}_{name}") for name in columns if name == "name_key"),
        )
