"""Sources have viewers at a remote, and remotes have people and groups."""

import sqlalchemy as sa
from alembic import op

from conspectus.records.tables.core import Number, String

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables; so far, no source is mirrored."""
    op.add_column("collections", sa.Column("mirrors", Number, nullable=False, server_default="0"))
    op.add_column("sources", sa.Column("mirrored", String))
    mirrored = sa.text("mirrored IS NOT NULL")
    columns = ["collection", "mirrored"]
    op.create_index(
        "ix_sources_mirrored", "sources", columns, sqlite_where=mirrored, postgresql_where=mirrored
    )
    op.create_table(
        "source_viewers",
        sa.Column("source", String, nullable=False),
        sa.Column("viewer", String, nullable=False),
        sa.PrimaryKeyConstraint("source", "viewer", name="pk_source_viewers"),
        sa.ForeignKeyConstraint(
            ["source"], ["sources.id"], name="fk_source_viewers_source_sources", ondelete="CASCADE"
        ),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_source_viewers_viewer", "source_viewers", ["viewer"])
    op.create_table(
        "remote_members",
        sa.Column("connection", String, nullable=False),
        sa.Column("group", String, nullable=False),
        sa.Column("member", String, nullable=False),
        sa.PrimaryKeyConstraint("connection", "group", "member", name="pk_remote_members"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_remote_members_connection_member", "remote_members", ["connection", "member"])
    op.create_table(
        "remote_people",
        sa.Column("connection", String, nullable=False),
        sa.Column("name", String, nullable=False),
        sa.Column("user", String, nullable=False),
        sa.Column("created", Number, nullable=False),
        sa.PrimaryKeyConstraint("connection", "name", name="pk_remote_people"),
        sa.ForeignKeyConstraint(
            ["user"], ["users.id"], name="fk_remote_people_user_users", ondelete="CASCADE"
        ),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_remote_people_user", "remote_people", ["user"])
