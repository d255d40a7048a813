"""What a connector tells of a wiki or any other store of documents."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from conspectus.model.ids import CollectionId, UserId
from conspectus.model.records import Metadata

SyncState = Literal["idle", "running", "complete", "error"]


@dataclass(frozen=True, slots=True)
class ConnectorEntry:
    """One page as a listing shows it.

    `key` is its identity, which a move or a new title does not change; `space` names the source it stands
    in; `revision` changes whenever its content or place does; `parent` is the key of the page above it.
    """

    key: str
    space: str
    revision: str
    title: str = ""
    parent: str | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """A batch of a listing.

    `entries` were made or changed, `gone` are keys of pages and `spaces_gone` names of spaces that are no
    more; `cursor` is what to list from when everything of this batch is taken in. `complete` says that
    the batches of this listing, from its first, name everything that exists.
    """

    entries: tuple[ConnectorEntry, ...]
    cursor: str
    gone: tuple[str, ...] = ()
    spaces_gone: tuple[str, ...] = ()
    complete: bool = False


@dataclass(frozen=True, slots=True)
class Connection:
    """A collection kept in step with a store elsewhere. `options` hold no secret."""

    id: str
    collection: CollectionId
    owner: UserId
    name: str
    connector: str
    options: Metadata = field(default_factory=dict)
    cursor: str | None = None
    state: SyncState = "idle"
    error: str | None = None
    last_run: datetime | None = None


@dataclass(frozen=True, slots=True)
class SyncReport:
    """What one run did, by page."""

    added: int = 0
    replaced: int = 0
    unchanged: int = 0
    deleted: int = 0
    failures: tuple[tuple[str, str], ...] = ()
