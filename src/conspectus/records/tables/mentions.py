"""The table of names that passages mention: a row for each name of each passage."""

from sqlalchemy import Column, ForeignKey, Index, Table

from conspectus.records.tables.core import Number, String, Text, metadata

mentions = Table(
    "mentions",
    metadata,
    Column("chunk", ForeignKey("chunks.id", ondelete="CASCADE"), primary_key=True),
    Column("key", String, primary_key=True),
    Column("surface", Text, nullable=False),
    Column("type", String, nullable=False),
    Column("start", Number, nullable=False),
    Column("end", Number, nullable=False),
    Column("collection", String, nullable=False),
    Column("source", String, nullable=False),
    Index(None, "collection", "key", "source", "chunk", "type"),
    sqlite_with_rowid=False,
)
"""`start` and `end` are those of the first mention. Collection and source, which never change, stand here
again so that one index answers which passages of some sources mention a name, and as what."""
