"""Identifiers: strings for what people name, growing integers for what the index counts."""

from typing import NewType

CollectionId = NewType("CollectionId", str)
SourceId = NewType("SourceId", str)
DocumentId = NewType("DocumentId", str)
ChunkId = NewType("ChunkId", int)
UserId = NewType("UserId", str)
GroupId = NewType("GroupId", str)
KeyId = NewType("KeyId", str)
JobId = NewType("JobId", str)

LOCAL = UserId("local")
"""Whoever holds the data folder: the owner of an embedded store, and the owner account of a server."""
NOBODY = UserId("")
