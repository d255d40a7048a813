"""Connections of collections with stores of documents, and what a sync reports."""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import Annotated, Literal

from conspectus.deferred import dataclass
from conspectus.model.annotations import Example
from conspectus.model.ids import CollectionId, UserId
from conspectus.model.parameters import StoredId
from conspectus.model.records import Metadata

SyncState = Literal["idle", "running", "complete", "error"]
RemoteAccess = Literal["granted", "lost", "unreachable"]
"""Whether the last sync could read the remote: `lost` if it refused, `unreachable` without an answer."""


@dataclass(frozen=True, slots=True)
class ConnectorEntry:
    """One page of a listing.

    `key` identifies it: a move or a new title does not change it; `space` names its source; `revision`
    changes with its content or location; `parent` is the key of the page above it.

    `viewers` are the people and groups that may read it, by the names of the remote, if the connector mirrors
    permissions. None is nobody, and `everyone` stands for all people of the remote.
    """

    key: str
    space: str
    revision: str
    title: str = ""
    parent: str | None = None
    viewers: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """A batch of a listing.

    `entries` were made or changed; `gone` are keys of deleted pages, `spaces_gone` names of deleted spaces.
    `cursor` is where to continue when this batch is stored. `complete` says that the batches of this listing,
    from its first, name everything that exists. `not_pages` are paths of files that the connector does not
    read.
    """

    entries: tuple[ConnectorEntry, ...]
    cursor: str
    gone: tuple[str, ...] = ()
    spaces_gone: tuple[str, ...] = ()
    complete: bool = False
    not_pages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Connection:
    """A link between a collection and a store of documents.

    `options` hold no secret. Credentials are sealed apart, and only `has_credentials` tells that there are
    some.

    `access` tells whether the last syncs could read, since `access_since`. Documents of a connection that has
    lost access are hidden from all but managers until a sync succeeds.
    """

    id: StoredId
    collection: CollectionId
    owner: UserId
    name: Annotated[str, Example("wiki")]
    connector: Annotated[str, Example("git")]
    options: Annotated[Metadata, Example({"address": "https://git.example.org/handbook.git"})] = field(
        default_factory=dict
    )
    cursor: Annotated[str | None, Example("4f1c0de")] = None
    state: SyncState = "idle"
    error: str | None = None
    last_run: datetime | None = None
    access: RemoteAccess = "granted"
    access_since: datetime | None = None
    has_credentials: bool = False


@dataclass(frozen=True, slots=True)
class SyncReport:
    """Counts of pages of one sync, by outcome.

    `skipped` counts the files that are no pages, such as pictures and recordings; `skipped_files` has the
    reason for each of the first ones by name. `requests` counts those to the remote over HTTP, and
    `waited_seconds` how long they waited for their turn. `is_cut_off` says that the budget of them was spent.
    `unmapped_people` counts people at the remote of whom nobody has said which user they are.
    """

    added: int = 0
    replaced: int = 0
    unchanged: int = 0
    deleted: int = 0
    failures: tuple[tuple[str, str], ...] = ()
    skipped: int = 0
    skipped_files: Mapping[str, str] = field(default_factory=dict)
    requests: int = 0
    waited_seconds: float = 0.0
    is_cut_off: bool = False
    unmapped_people: int = 0
