"""Identifiers: strings for named things, growing integers for indexed things."""

import re
from typing import Annotated, Final, NewType

from conspectus.model.annotations import Example

EXAMPLE_ID: Final = "0195f3a1c2d47e80b6a4c1d2e3f40517"

CollectionId = NewType("CollectionId", Annotated[str, Example("notes")])
SourceId = NewType("SourceId", Annotated[str, Example("handbook")])
DocumentId = NewType("DocumentId", Annotated[str, Example(EXAMPLE_ID)])
ChunkId = NewType("ChunkId", int)
UserId = NewType("UserId", Annotated[str, Example("ann")])
GroupId = NewType("GroupId", Annotated[str, Example("operators")])
KeyId = NewType("KeyId", Annotated[str, Example(EXAMPLE_ID)])
JobId = NewType("JobId", Annotated[str, Example(EXAMPLE_ID)])

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
