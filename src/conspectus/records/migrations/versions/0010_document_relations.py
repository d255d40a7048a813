"""Pages have names by which others refer to them, and statements about others.

Both are filled for stored pages, as they would have been written.
"""

import sqlalchemy as sa
from alembic import op

from conspectus.records.core.relations import fill_stored_pages
from conspectus.records.tables.core import Number, String, Text

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables, and read the names and statements of stored pages."""
    op.create_table(
        "document_names",
        sa.Column("document", Number, nullable=False),
        sa.Column("name", String, nullable=False),
        sa.Column("collection", String, nullable=False),
        sa.PrimaryKeyConstraint("document", "name", name="pk_document_names"),
        sa.ForeignKeyConstraint(
            ["document"],
            ["documents.number"],
            name="fk_document_names_document_documents",
            ondelete="CASCADE",
        ),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_document_names_collection_name", "document_names", ["collection", "name"])
    op.create_table(
        "document_statements",
        sa.Column("document", Number, nullable=False),
        sa.Column("kind", String, nullable=False),
        sa.Column("target", String, nullable=False),
        sa.Column("is_inverse", Number, nullable=False),
        sa.Column("basis", String, nullable=False),
        sa.Column("collection", String, nullable=False),
        sa.Column("editable", Text, nullable=False),
        sa.PrimaryKeyConstraint(
            "document", "kind", "target", "is_inverse", "basis", name="pk_document_statements"
        ),
        sa.ForeignKeyConstraint(
            ["document"],
            ["documents.number"],
            name="fk_document_statements_document_documents",
            ondelete="CASCADE",
        ),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "ix_document_statements_collection_target", "document_statements", ["collection", "target"]
    )
    fill_stored_pages(op.get_bind())
