"""What jobs need besides their rows, where no folder is shared by all processes."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
STRING = sa.String().with_variant(sa.String(collation="C"), "postgresql")
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "job_secrets",
        sa.Column("job", STRING, nullable=False),
        sa.Column("secret", TEXT, nullable=False),
        sa.Column("kept", NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("job", name="pk_job_secrets"),
    )
    op.create_table(
        "job_files",
        sa.Column("job", STRING, nullable=False),
        sa.Column("file", sa.Integer(), nullable=False),
        sa.Column("part", sa.Integer(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.Column("kept", NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("job", "file", "part", name="pk_job_files"),
    )
