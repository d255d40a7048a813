"""The tables of long work, of calls to providers, and of answers kept for repeated requests."""

from sqlalchemy import Column, Float, ForeignKey, Index, Integer, Table, UniqueConstraint

from conspectus.records.tables.core import Number, String, Text, metadata

jobs = Table(
    "jobs",
    metadata,
    Column("id", String, primary_key=True),
    Column("kind", String, nullable=False),
    Column("owner", String, nullable=False),
    Column("collection", ForeignKey("collections.id", ondelete="CASCADE"), nullable=False),
    Column("source", String),
    Column("title", Text, nullable=False),
    Column("created", Number, nullable=False),
    Column("arguments", Text, nullable=False),
    Column("state", String, nullable=False),
    Column("done", Number, nullable=False),
    Column("total", Number, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("code", String),
    Column("error", Text),
    Column("result", Text),
    Column("started", Number),
    Column("finished", Number),
    Index(None, "created", "id"),
    Index(None, "collection", "created", "id"),
    Index(None, "state"),
)

connections = Table(
    "connections",
    metadata,
    Column("id", String, primary_key=True),
    Column("collection", ForeignKey("collections.id", ondelete="CASCADE"), nullable=False),
    Column("owner", String, nullable=False),
    Column("name", String, nullable=False),
    Column("connector", String, nullable=False),
    Column("options", Text, nullable=False),
    Column("cursor", Text),
    Column("state", String, nullable=False),
    Column("error", Text),
    Column("ran", Number),
    UniqueConstraint("collection", "name"),
)

embedding_requests = Table(
    "embedding_requests",
    metadata,
    Column("id", Number, primary_key=True, autoincrement=False),
    Column("kind", String, nullable=False),
    Column("status", String, nullable=False),
    Column("model", String, nullable=False),
    Column("latency", Float, nullable=False),
    Column("inputs", Integer, nullable=False),
    Column("tokens", Number, nullable=False),
    Column("created", Number, nullable=False),
    Column("error", String),
    Column("user_id", String),
    Index(None, "created"),
)

replays = Table(
    "replays",
    metadata,
    Column("person", String, primary_key=True),
    Column("key", String, primary_key=True),
    Column("fingerprint", String, nullable=False),
    Column("answer", Text),
    Column("created", Number, nullable=False),
    Column("stored", Integer, nullable=False, server_default="0"),
    Column("until", Number, nullable=False, server_default="0"),
    Index(None, "created"),
)
