"""Windows, recalls and chats that were given can be kept as answer records."""

import sqlalchemy as sa
from alembic import op

from conspectus.records.tables.core import Number, String, Text

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

_TEXTS = ("options", "window", "citations", "candidates", "prompt", "answer")


def upgrade() -> None:
    """Create the tables; so far, nothing is kept."""
    op.create_table(
        "answers",
        sa.Column("id", String, nullable=False),
        sa.Column("kind", String, nullable=False),
        sa.Column("user", String, nullable=False),
        sa.Column("collection", String, nullable=False),
        sa.Column("created", Number, nullable=False),
        sa.Column("bytes", Number, nullable=False),
        sa.Column("documents", sa.Integer, nullable=False),
        sa.Column("question", Text, nullable=False),
        sa.Column("outcome", String, nullable=False),
        sa.Column("passages", sa.Integer, nullable=False),
        sa.Column("tokens", sa.Integer, nullable=False),
        sa.Column("confidence", sa.Float, nullable=False),
        sa.Column("model", String, nullable=False),
        sa.Column("failure", String, nullable=False),
        *(sa.Column(name, Text, nullable=False) for name in _TEXTS),
        sa.Column("cited", String, nullable=False),
        sa.Column("left_out", String, nullable=False),
        sa.Column("answer_digest", String, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_answers"),
    )
    op.create_index("ix_answers_created_id_bytes", "answers", ["created", "id", "bytes"])
    op.create_index("ix_answers_user_answer_digest", "answers", ["user", "answer_digest"])
    op.create_index("ix_answers_collection", "answers", ["collection"])
    op.create_table(
        "answer_documents",
        sa.Column("answer", String, nullable=False),
        sa.Column("document", Number, nullable=False),
        sa.Column("fingerprint", String, nullable=False),
        sa.PrimaryKeyConstraint("answer", "document", name="pk_answer_documents"),
        sa.ForeignKeyConstraint(
            ["answer"], ["answers.id"], name="fk_answer_documents_answer_answers", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["document"],
            ["documents.number"],
            name="fk_answer_documents_document_documents",
            ondelete="CASCADE",
        ),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_answer_documents_document", "answer_documents", ["document"])
