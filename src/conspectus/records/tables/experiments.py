"""Tables of question sets and their runs."""

from sqlalchemy import Column, Float, ForeignKey, Index, Integer, Table, UniqueConstraint

from conspectus.records.tables.core import Number, String, Text, metadata

question_sets = Table(
    "question_sets",
    metadata,
    Column("id", String, primary_key=True),
    Column("collection", ForeignKey("collections.id", ondelete="CASCADE"), nullable=False),
    Column("name", String, nullable=False),
    Column("created", Number, nullable=False),
    UniqueConstraint("collection", "name"),
)

questions = Table(
    "questions",
    metadata,
    Column("id", String, primary_key=True),
    Column("question_set", ForeignKey("question_sets.id", ondelete="CASCADE"), nullable=False),
    Column("key", String, nullable=False),
    Column("query", Text, nullable=False),
    Column("evidence", Integer, nullable=False),
    UniqueConstraint("question_set", "key"),
)
"""The questions of sets. `evidence` is the number of rows of `question_evidence`.

A question is shown only to people who may read the documents of all of them.
"""

question_evidence = Table(
    "question_evidence",
    metadata,
    Column("question", ForeignKey("questions.id", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("document", ForeignKey("documents.number", ondelete="CASCADE"), nullable=False),
    Column("start", Integer, nullable=False),
    Column("end", Integer, nullable=False),
    Column("fingerprint", String, nullable=False),
    Index(None, "document"),
)
"""Characters of documents that answer a question, with the fingerprints that the documents had."""

runs = Table(
    "runs",
    metadata,
    Column("id", String, primary_key=True),
    Column("question_set", ForeignKey("question_sets.id", ondelete="CASCADE"), nullable=False),
    Column("name", String, nullable=False),
    Column("created", Number, nullable=False),
    Column("job", String, nullable=False),
    Column("options", Text, nullable=False),
    Column("budgets", String, nullable=False),
    Column("figures", String, nullable=False),
    Index(None, "question_set"),
    Index(None, "job"),
)
"""Runs of sets. `budgets` are the tokens of their windows; `figures` are empty until all were asked."""

run_windows = Table(
    "run_windows",
    metadata,
    Column("run", ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("question", ForeignKey("questions.id", ondelete="CASCADE"), primary_key=True),
    Column("max_tokens", Integer, primary_key=True),
    Column("tokens", Integer, nullable=False),
    Column("milliseconds", Float, nullable=False),
    Column("share", Float, nullable=False),
    Column("passages", Text, nullable=False),
    Index(None, "question"),
)
"""The windows of a run: what they cost, the share of the evidence in them, and where their passages are."""
