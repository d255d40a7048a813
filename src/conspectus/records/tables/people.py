"""The tables of people and of what they may do."""

from sqlalchemy import Column, ForeignKey, Index, Table, UniqueConstraint

from conspectus.records.tables.core import Number, String, Text, metadata

users = Table(
    "users",
    metadata,
    Column("id", String, primary_key=True),
    Column("name", String, nullable=False),
    Column("owner", Number, nullable=False),
    Column("disabled", Number, nullable=False),
    Column("created", Number, nullable=False),
    UniqueConstraint("name"),
)

groups = Table(
    "groups",
    metadata,
    Column("id", String, primary_key=True),
    Column("name", String, nullable=False),
    Column("created", Number, nullable=False),
    UniqueConstraint("name"),
)

members = Table(
    "members",
    metadata,
    Column("group", ForeignKey("groups.id", ondelete="CASCADE"), primary_key=True),
    Column("user", ForeignKey("users.id", ondelete="CASCADE"), primary_key=True),
    Index(None, "user"),
)

keys = Table(
    "keys",
    metadata,
    Column("id", String, primary_key=True),
    Column("user", ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    Column("label", String, nullable=False),
    Column("hash", String, nullable=False),
    Column("scopes", Text, nullable=False),
    Column("created", Number, nullable=False),
    Column("expires", Number),
    Column("last_used", Number),
    Column("revoked", Number),
    Index(None, "user"),
)

grants = Table(
    "grants",
    metadata,
    Column("id", String, primary_key=True),
    Column("collection", ForeignKey("collections.id", ondelete="CASCADE"), nullable=False),
    Column("source", ForeignKey("sources.id", ondelete="CASCADE")),
    Column("user", ForeignKey("users.id", ondelete="CASCADE")),
    Column("group", ForeignKey("groups.id", ondelete="CASCADE")),
    Column("role", String, nullable=False),
    Column("created", Number, nullable=False),
    Index(None, "collection"),
    Index(None, "source"),
    Index(None, "user"),
    Index(None, "group"),
)
