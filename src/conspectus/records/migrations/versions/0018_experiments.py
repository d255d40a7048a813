"""Question sets and their runs are stored, and collections have defaults for searches."""

import sqlalchemy as sa
from alembic import op

from conspectus.records.tables.core import Number, String, Text

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables; so far, there are no sets, and all defaults are the built-in ones."""
    op.add_column("collections", sa.Column("retrieval", Text))
    op.create_table(
        "question_sets",
        sa.Column("id", String, nullable=False),
        sa.Column("collection", String, nullable=False),
        sa.Column("name", String, nullable=False),
        sa.Column("created", Number, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_question_sets"),
        sa.UniqueConstraint("collection", "name", name="uq_question_sets_collection_name"),
        _reference("question_sets", "collection", "collections", "id"),
    )
    op.create_table(
        "questions",
        sa.Column("id", String, nullable=False),
        sa.Column("question_set", String, nullable=False),
        sa.Column("key", String, nullable=False),
        sa.Column("query", Text, nullable=False),
        sa.Column("evidence", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_questions"),
        sa.UniqueConstraint("question_set", "key", name="uq_questions_question_set_key"),
        _reference("questions", "question_set", "question_sets", "id"),
    )
    op.create_table(
        "question_evidence",
        sa.Column("question", String, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("document", Number, nullable=False),
        sa.Column("start", sa.Integer, nullable=False),
        sa.Column("end", sa.Integer, nullable=False),
        sa.Column("fingerprint", String, nullable=False),
        sa.PrimaryKeyConstraint("question", "number", name="pk_question_evidence"),
        _reference("question_evidence", "question", "questions", "id"),
        _reference("question_evidence", "document", "documents", "number"),
    )
    op.create_index("ix_question_evidence_document", "question_evidence", ["document"])
    op.create_table(
        "runs",
        sa.Column("id", String, nullable=False),
        sa.Column("question_set", String, nullable=False),
        sa.Column("name", String, nullable=False),
        sa.Column("created", Number, nullable=False),
        sa.Column("job", String, nullable=False),
        sa.Column("options", Text, nullable=False),
        sa.Column("budgets", String, nullable=False),
        sa.Column("figures", String, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_runs"),
        _reference("runs", "question_set", "question_sets", "id"),
    )
    op.create_index("ix_runs_question_set", "runs", ["question_set"])
    op.create_index("ix_runs_job", "runs", ["job"])
    op.create_table(
        "run_windows",
        sa.Column("run", String, nullable=False),
        sa.Column("question", String, nullable=False),
        sa.Column("max_tokens", sa.Integer, nullable=False),
        sa.Column("tokens", sa.Integer, nullable=False),
        sa.Column("milliseconds", sa.Float, nullable=False),
        sa.Column("share", sa.Float, nullable=False),
        sa.Column("passages", Text, nullable=False),
        sa.PrimaryKeyConstraint("run", "question", "max_tokens", name="pk_run_windows"),
        _reference("run_windows", "run", "runs", "id"),
        _reference("run_windows", "question", "questions", "id"),
    )
    op.create_index("ix_run_windows_question", "run_windows", ["question"])


def _reference(table: str, column: str, other: str, key: str) -> sa.ForeignKeyConstraint:
    """Return a reference of rows that end with the row of the other table."""
    return sa.ForeignKeyConstraint(
        [column], [f"{other}.{key}"], name=f"fk_{table}_{column}_{other}", ondelete="CASCADE"
    )
