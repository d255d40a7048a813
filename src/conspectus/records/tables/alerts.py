"""The tables of standing alerts and of what they told."""

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
    Column("where", Text, nullable=False),
    Column("floor", Float),
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
    Index(
        "ix_alert_events_pending",
        "alert",
        "due",
        sqlite_where=PENDING,
        postgresql_where=PENDING,
    ),
)
