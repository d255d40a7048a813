"""Tables of alerts with their matches, and of summaries."""

from sqlalchemy import Column, Float, ForeignKey, Index, Integer, Table, UniqueConstraint, text

from conspectus.records.tables.core import Number, String, Text, metadata

PENDING = text("delivery = 'pending'")

alerts = Table(
    "alerts",
    metadata,
    Column("id", String, primary_key=True),
    Column("owner", String, nullable=False),
    Column("collection", ForeignKey("collections.id", ondelete="CASCADE"), nullable=False),
    Column("name", String, nullable=False),
    Column("query", Text, nullable=False),
    Column("streams", Text, nullable=False),
    Column("filter", Text, nullable=False),
    Column("min_similarity", Float),
    Column("gap_seconds", Float, nullable=False),
    Column("webhook", Text),
    Column("created", Number, nullable=False),
    Column("checked", Number, nullable=False),
    Column("since", Number, nullable=False),
    UniqueConstraint("owner", "collection", "name"),
    Index(None, "collection", "checked"),
)

alert_events = Table(
    "alert_events",
    metadata,
    Column("number", Number, primary_key=True, autoincrement=False),
    Column("alert", ForeignKey("alerts.id", ondelete="CASCADE"), nullable=False),
    Column("document", ForeignKey("documents.id", ondelete="CASCADE"), nullable=False),
    Column("source", String, nullable=False),
    Column("occurred_start", Number),
    Column("occurred_end", Number),
    Column("reason", Text, nullable=False),
    Column("created", Number, nullable=False),
    Column("delivery", String, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("error", Text),
    Column("due", Number),
    Index(None, "alert", "source", "occurred_end"),
    Index(None, "document"),
    Index("ix_alert_events_pending", "alert", "due", sqlite_where=PENDING),
)


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
