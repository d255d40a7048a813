"""People and groups at the remote of a connection, and who of them may read."""

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Final

from conspectus.deferred import dataclass
from conspectus.model.annotations import Example, Length
from conspectus.model.ids import DocumentId, UserId

RemoteName = Annotated[
    str, Length(1, 500), "Person as the remote of the connection names them.", Example("user:4711")
]
EVERYONE: Final = "everyone"
"""The viewer that stands for all people of a remote."""


@dataclass(frozen=True, slots=True)
class AccessListing:
    """A batch of what changed of permissions at a remote.

    Args:
        cursor: where to continue when this batch is stored.
        viewers: the people and groups that may now read an entry, by its key; none for nobody.
        members: all members of a group, people and groups, by its name. A group is never cut off.
        complete: the batches of this listing, from its first, name every group that has members.
    """

    cursor: str
    viewers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    members: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    complete: bool = False


@dataclass(frozen=True, slots=True)
class OpenableDocuments:
    """The documents that a person may open at their remote now, of those that it was asked for.

    Args:
        documents: the ids of those that it lets the person open.
        failure: why it could not be asked, as people may read it; empty if it answered.
    """

    documents: frozenset[DocumentId] = frozenset()
    failure: str = ""


@dataclass(frozen=True, slots=True)
class RemotePerson:
    """A person at the remote of a connection, by its name for them, and the user that they are, if known."""

    name: Annotated[str, Example("user:4711")]
    user: UserId | None = None
