"""Tables of answer records."""

from sqlalchemy import Column, Float, ForeignKey, Index, Integer, Table

from conspectus.records.tables.core import Number, String, Text, metadata

answers = Table(
    "answers",
    metadata,
    Column("id", String, primary_key=True),
    Column("kind", String, nullable=False),
    Column("user", String, nullable=False),
    Column("collection", String, nullable=False),
    Column("created", Number, nullable=False),
    Column("bytes", Number, nullable=False),
    Column("documents", Integer, nullable=False),
    Column("question", Text, nullable=False),
    Column("outcome", String, nullable=False),
    Column("passages", Integer, nullable=False),
    Column("tokens", Integer, nullable=False),
    Column("confidence", Float, nullable=False),
    Column("model", String, nullable=False),
    Column("failure", String, nullable=False),
    Column("options", Text, nullable=False),
    Column("window", Text, nullable=False),
    Column("citations", Text, nullable=False),
    Column("candidates", Text, nullable=False),
    Column("prompt", Text, nullable=False),
    Column("answer", Text, nullable=False),
    Column("cited", String, nullable=False),
    Column("left_out", String, nullable=False),
    Column("answer_digest", String, nullable=False),
    Index(None, "created", "id", "bytes"),
    Index(None, "user", "answer_digest"),
    Index(None, "collection"),
)
"""Windows, recalls and chats that were given. `collection` is an id, or `*` for all.

`documents` is the number of documents whose texts are in the record. It is shown only to people who may read
as many of its rows of `answer_documents`: one that lost a row is shown to nobody.
"""

answer_documents = Table(
    "answer_documents",
    metadata,
    Column("answer", ForeignKey("answers.id", ondelete="CASCADE"), primary_key=True),
    Column("document", ForeignKey("documents.number", ondelete="CASCADE"), primary_key=True),
    Column("fingerprint", String, nullable=False),
    Index(None, "document"),
    sqlite_with_rowid=False,
)
"""The documents whose texts are in an answer record, with the fingerprints that they had."""
