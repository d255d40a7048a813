"""Identifiers: strings for what people name, growing integers for what the index counts."""

from typing import NewType

CollectionId = NewType("CollectionId", str)
SourceId = NewType("SourceId", str)
DocumentId = NewType("DocumentId", str)
ChunkId = NewType("ChunkId", int)
