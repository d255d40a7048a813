"""Tables of jobs, requests, leases and chat responses."""

from sqlalchemy import Column, Float, ForeignKey, Index, Integer, LargeBinary, Table, UniqueConstraint

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
    Column("last_run", Number),
    Column("access", String, nullable=False, server_default="granted"),
    Column("access_since", Number),
    Column("credentials", Text),
    UniqueConstraint("collection", "name"),
)
"""`credentials` are sealed with a key that is not in the database."""

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


chat_answers = Table(
    "chat_answers",
    metadata,
    Column("stream", String, primary_key=True),
    Column("person", String, nullable=False),
    Column("documents", Text, nullable=False),
    Column("frames", Number, nullable=False),
    Column("finished", Integer, nullable=False),
    Column("written", Number, nullable=False),
    Column("read_at", Number, nullable=False),
)
"""`written` and `read_at` are when the producing and a forwarding process were last active."""

chat_frames = Table(
    "chat_frames",
    metadata,
    Column("stream", ForeignKey("chat_answers.stream", ondelete="CASCADE"), primary_key=True),
    Column("number", Number, primary_key=True, autoincrement=False),
    Column("frame", LargeBinary, nullable=False),
)


job_secrets = Table(
    "job_secrets",
    metadata,
    Column("job", String, primary_key=True),
    Column("secret", Text, nullable=False),
    Column("stored", Number, nullable=False),
)

job_files = Table(
    "job_files",
    metadata,
    Column("job", String, primary_key=True),
    Column("file", Integer, primary_key=True, autoincrement=False),
    Column("part", Integer, primary_key=True, autoincrement=False),
    Column("data", LargeBinary, nullable=False),
    Column("stored", Number, nullable=False),
)
"""A file in parts, of which the first may be empty."""


leases = Table(
    "leases",
    metadata,
    Column("name", String, primary_key=True),
    Column("holder", String, nullable=False),
    Column("fence", Number, nullable=False),
    Column("until", Number, nullable=False),
)

allowances = Table(
    "allowances",
    metadata,
    Column("name", String, primary_key=True),
    Column("minute", Number, nullable=False),
    Column("used", Number, nullable=False),
)

purges = Table(
    "purges",
    metadata,
    Column("id", String, primary_key=True),
    Column("collection", String, nullable=False),
)
"""Unfinished purges, each with the collection whose index may contain deleted content."""
