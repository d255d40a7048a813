"""Identifiers: strings for named things, growing integers for indexed things."""

import re
from typing import Final, NewType

CollectionId = NewType("CollectionId", str)
SourceId = NewType("SourceId", str)
DocumentId = NewType("DocumentId", str)
ChunkId = NewType("ChunkId", int)
UserId = NewType("UserId", str)
GroupId = NewType("GroupId", str)
KeyId = NewType("KeyId", str)
JobId = NewType("JobId", str)

LOCAL = UserId("local")
"""The owner of an embedded store, and the owner account of a server."""
NOBODY = UserId("")

_UUID: Final = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-([0-9a-f])[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE
)


def is_uuid(name: str) -> bool:
    """Return whether a name is a UUID, the form of ids of collections, users and groups."""
    return _UUID.fullmatch(name) is not None


def is_stable_id(name: str) -> bool:
    """Return whether a name is a UUID of version 5, the form of ids of sources.

    Other UUIDs are names: programs name channels and streams by their own UUIDs.
    """
    match = _UUID.fullmatch(name)
    return match is not None and match[1] == "5"
