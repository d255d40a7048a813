"""What a connector reports of a wiki or another store of documents."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from conspectus.model.ids import CollectionId, UserId
from conspectus.model.records import Metadata

SyncState = Literal["idle", "running", "complete", "error"]


@dataclass(frozen=True, slots=True)
class ConnectorEntry:
    """One page of a listing.

    `key` identifies it: a move or a new title does not change it; `space` names its source; `revision`
    changes with its content or location; `parent` is the key of the page above it.
    """

    key: str
    space: str
    revision: str
    title: str = ""
    parent: str | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """A batch of a listing.

    `entries` were made or changed; `gone` are keys of deleted pages, `spaces_gone` names of deleted spaces.
    `cursor` is where to continue when this batch is stored. `complete` says that the batches of this listing,
    from its first, name everything that exists.
    """

    entries: tuple[ConnectorEntry, ...]
    cursor: str
    gone: tuple[str, ...] = ()
    spaces_gone: tuple[str, ...] = ()
    complete: bool = False


@dataclass(frozen=True, slots=True)
class Connection:
    """A link between a collection and a store of documents. `options` hold no secret."""

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
    """Counts of pages of one sync, by outcome."""

    added: int = 0
    replaced: int = 0
    unchanged: int = 0
    deleted: int = 0
    failures: tuple[tuple[str, str], ...] = ()
