"""The tables of answers of chats while they are made."""

from sqlalchemy import Column, ForeignKey, Integer, LargeBinary, Table

from conspectus.records.tables.core import Number, String, Text, metadata

spoken = Table(
    "spoken",
    metadata,
    Column("stream", String, primary_key=True),
    Column("person", String, nullable=False),
    Column("documents", Text, nullable=False),
    Column("frames", Number, nullable=False),
    Column("over", Integer, nullable=False),
    Column("written", Number, nullable=False),
    Column("heard", Number, nullable=False),
)
"""`written` and `heard` are when the process that makes it, and one that passes it on, were there last."""

spoken_frames = Table(
    "spoken_frames",
    metadata,
    Column("stream", ForeignKey("spoken.stream", ondelete="CASCADE"), primary_key=True),
    Column("number", Number, primary_key=True, autoincrement=False),
    Column("frame", LargeBinary, nullable=False),
)
