"""A copy of a store that is made of the listings of its connector alone."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import field

from conspectus.deferred import dataclass
from conspectus.model.connections import ConnectorEntry, Listing
from conspectus.ports.connectors import Connector
from conspectus.testing.connectors.servers import PageStore


@dataclass(slots=True)
class Copy:
    """A copy made of all batches: the entry and text by key, and the cursor."""

    store: PageStore
    cursor: str | None = None
    pages: dict[str, tuple[ConnectorEntry, str]] = field(default_factory=dict)
    paths: dict[str, object] = field(default_factory=dict)

    async def follow(self, *, batches: int = 1_000_000) -> list[Listing]:
        """Copy at most this many batches with a new connector, then close it as if it had been killed."""
        listings: list[Listing] = []
        async with open_connector(self.store) as connector:
            async for listing in connector.changes(self.cursor):
                await self._take(listing, connector)
                listings.append(listing)
                if listing.complete:
                    named = {entry.key for part in listings for entry in part.entries}
                    self.pages = {key: page for key, page in self.pages.items() if key in named}
                if len(listings) == batches:
                    break
        return listings

    async def _take(self, listing: Listing, connector: Connector) -> None:
        for entry in listing.entries:
            document = await connector.fetch(entry)
            self.pages[entry.key] = (entry, document.text)
            self.paths[entry.key] = document.metadata.get("path")
        for key in listing.gone:
            self.pages.pop(key, None)
        gone = {key for key, (entry, _) in self.pages.items() if entry.space in listing.spaces_gone}
        self.pages = {key: page for key, page in self.pages.items() if key not in gone}
        self.cursor = listing.cursor

    def texts(self) -> dict[str, list[str]]:
        """The texts of each space, sorted."""
        spaces: dict[str, list[str]] = {}
        for entry, text in self.pages.values():
            spaces.setdefault(entry.space, []).append(text.strip())
        return {space: sorted(texts) for space, texts in spaces.items()}

    def key(self, text: str) -> str:
        """The key of the only page with this text."""
        (only,) = [key for key, (_, its) in self.pages.items() if its.strip() == text]
        return only


@asynccontextmanager
async def open_connector(store: PageStore) -> AsyncIterator[Connector]:
    """A connector that is closed at the end."""
    connector = store.connect()
    try:
        yield connector
    finally:
        await connector.close()


def entries(listings: list[Listing]) -> list[ConnectorEntry]:
    """All entries of some batches."""
    return [entry for listing in listings for entry in listing.entries]
