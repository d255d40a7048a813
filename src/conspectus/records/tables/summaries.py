"""The tables of kept summaries, and of what each was made of."""

from sqlalchemy import Column, Float, ForeignKey, Index, Integer, Table

from conspectus.records.tables.core import Number, String, Text, metadata

summaries = Table(
    "summaries",
    metadata,
    Column("id", String, primary_key=True),
    Column("source", ForeignKey("sources.id", ondelete="CASCADE"), nullable=False),
    Column("recipe", String, nullable=False),
    Column("text", Text, nullable=False),
    Index(None, "source", "recipe"),
)

summary_captions = Table(
    "summary_captions",
    metadata,
    Column("summary", ForeignKey("summaries.id", ondelete="CASCADE"), primary_key=True),
    Column("document", ForeignKey("documents.number", ondelete="CASCADE"), primary_key=True),
    Index(None, "document"),
)

summary_parts = Table(
    "summary_parts",
    metadata,
    Column("summary", ForeignKey("summaries.id", ondelete="CASCADE"), primary_key=True),
    Column("part", ForeignKey("summaries.id", ondelete="CASCADE"), primary_key=True),
    Index(None, "part"),
)

summary_borders = Table(
    "summary_borders",
    metadata,
    Column("source", ForeignKey("sources.id", ondelete="CASCADE"), primary_key=True),
    Column("recipe", String, primary_key=True),
    Column("first", Float, primary_key=True),
    Column("first_id", String, primary_key=True),
    Column("last", Float, nullable=False),
    Column("last_id", String, nullable=False),
    Column("full", Integer, nullable=False),
)

standing_summaries = Table(
    "standing_summaries",
    metadata,
    Column("source", ForeignKey("sources.id", ondelete="CASCADE"), primary_key=True),
    Column("owner", String, nullable=False),
    Column("request", Text, nullable=False),
    Column("since", Number, nullable=False),
)
