"""The tables beside memories: which were deleted, without what they said, and how long others stay."""

from sqlalchemy import Column, Float, ForeignKey, Index, Table

from conspectus.records.tables.core import Number, String, metadata

deleted_memories = Table(
    "deleted_memories",
    metadata,
    Column("document", String, primary_key=True),
    Column("source", ForeignKey("sources.id", ondelete="CASCADE"), nullable=False),
    Column("recorded", Number, nullable=False),
    Column("deleted", Number, nullable=False),
    Index(None, "source", "deleted"),
)

retentions = Table(
    "retentions",
    metadata,
    Column("id", String, primary_key=True),
    Column("collection", ForeignKey("collections.id", ondelete="CASCADE"), nullable=False),
    Column("begins", String, nullable=False),
    Column("days", Float),
    Column("most", Number),
    Column("owner", String, nullable=False),
    Column("ran", Number),
    Index(None, "collection", "begins"),
)
