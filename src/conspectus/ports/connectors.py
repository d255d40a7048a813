"""The port of connectors: stores of documents that collections are synced with."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from conspectus.deferred import dataclass
from conspectus.model.connections import Connection, ConnectorEntry, Listing
from conspectus.model.connectors import ConnectorKind
from conspectus.model.records import NewDocument
from conspectus.model.viewers import AccessListing
from conspectus.ports.web import Fetcher
from conspectus.settings import Settings


class Connector(Protocol):
    """An external store that a collection is synced with."""

    def changes(self, cursor: str | None) -> AsyncIterator[Listing]:
        """Batches of what changed since the cursor.

        Everything from None, from a cursor that is not the connector's, and where it cannot tell what
        changed. What is gone comes with the last batch or after what was moved. Raises FetchFailed.
        """

    async def fetch(self, entry: ConnectorEntry) -> NewDocument:
        """The page as it is now, or as it was listed last; empty text if it was emptied.

        For entries of this listing or an earlier one, after `changes` was called. Raises NotFound if the page
        was deleted, and UnreadableFile, TooLarge or FetchFailed if it cannot be read.
        """

    async def close(self) -> None:
        """Release what it holds."""


@runtime_checkable
class Watchable(Protocol):
    """A connector that hears of changes by itself."""

    def watch(self) -> AsyncIterator[None]:
        """Yields when something changed since the first step was asked for. Raises FetchFailed."""


@runtime_checkable
class Mirroring(Protocol):
    """A connector that mirrors the permissions of its remote: its documents are read by their viewers alone.

    The `viewers` of its entries count, and roles on the collection or source are needed too.
    """

    def access(self, cursor: str | None) -> AsyncIterator[AccessListing]:
        """Batches of what changed of permissions since the cursor: viewers of entries, members of groups.

        Everything from None, and from a cursor that is not the connector's. Raises FetchFailed.
        """


@runtime_checkable
class Verifying(Mirroring, Protocol):
    """A mirroring connector that can ask its remote at once what a person may open.

    The option `verify` of a connection turns that on: a boolean option that is false by default.
    """

    async def list_openable(self, person: str, entries: Sequence[ConnectorEntry]) -> Collection[str]:
        """The keys of those entries that a person at the remote may open now; not those that are deleted.

        Entries have the key, space, revision and title that were stored. `changes` was not called before.
        Raises FetchFailed: the person may open none then.
        """


class FileReader(Protocol):
    """Reads the bytes of files as `add` does, within the limits of the settings."""

    def reads(self, name: str) -> bool:
        """Whether a file of that name has a reader here."""

    async def read(self, body: bytes, name: str, *, charset: str | None = None) -> NewDocument:
        """A file as one document, whose metadata have its `path`: `name` has the folders, too.

        `charset` is the encoding that the remote declares. Raises UnreadableFile or TooLarge.
        """


class HostResolver(Protocol):
    """Checks hosts that a connector reaches by a protocol other than HTTP."""

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """The addresses of a host: connect to these, and look up its name no more.

        Raises ForbiddenAddress unless the settings allow all of them, and FetchFailed for an unknown host.
        """


@dataclass(frozen=True, slots=True)
class ConnectionSite:
    """What the connector of one connection may use.

    Args:
        fetcher: requests to addresses that the settings allow, bounded in bytes, time and redirects.
        folder: a folder for copies, which is deleted with the connection. It need not exist yet.
        settings: the limits of files, requests and documents.
        files: reads the bytes of files.
        hosts: the addresses of hosts for protocols other than HTTP.
    """

    fetcher: Fetcher
    folder: Path
    settings: Settings
    files: FileReader
    hosts: HostResolver


class ConnectorFactory(Protocol):
    """Creates connectors of one kind.

    A package adds a kind by an entry point of the group `conspectus.connectors` that names its factory.
    """

    @property
    def title(self) -> str:
        """What it connects with, as forms show it."""

    @property
    def options(self) -> type[Any]:
        """A dataclass of the options; the annotations of its fields declare bounds, help and examples.

        Its fields are texts, numbers, true or false, and lists of texts or integers. A text that is declared
        `Secret` is a credential: it is given apart, sealed at rest, and has `field(repr=False)`.
        """

    def is_local(self, options: Any) -> bool:
        """Whether it reads the machine that holds the store, which only the owner account may do."""

    def create(self, options: Any, site: ConnectionSite) -> Connector:
        """A connector with these options. Raises InvalidInput for options that exclude each other."""


class Connectors(Protocol):
    """The installed connectors."""

    def list_kinds(self) -> Sequence[ConnectorKind]:
        """Every installed kind, by name."""

    def create(self, connection: Connection, fetcher: Fetcher, credentials: Mapping[str, str]) -> Connector:
        """The connector of a connection. Raises InvalidInput for an unknown kind, option or credential."""

    def is_local(self, connection: Connection, credentials: Mapping[str, str]) -> bool:
        """Whether it reads the machine that holds the store. Raises InvalidInput as `create` does."""

    async def forget(self, connection: Connection) -> None:
        """Delete what the connector keeps on disk."""
