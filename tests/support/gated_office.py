"""What servers behind a gate share that speak HTTP, for the kit of connectors."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace

from conspectus.connectors import ConnectionSite, Connector, ConnectorEntry, Listing, NewDocument
from conspectus.testing.connectors import HttpGate


@dataclass
class GatedOffice:
    """A server that can be stopped and asked to slow down by its gate."""

    gate: HttpGate
    site: ConnectionSite

    @property
    def requests(self) -> int:
        return self.gate.requests

    def stop_after(self, requests: int | None) -> None:
        self.gate.stop_after(requests)

    def throttle(self, requests: int, retry_after: str | None) -> None:
        self.gate.throttle(requests, retry_after)


@dataclass
class NamedSpaces:
    """A connector with the names of spaces that the kit knows: a server has names of its own for them."""

    connector: Connector
    names: Mapping[str, str]

    async def changes(self, cursor: str | None) -> AsyncIterator[Listing]:
        async for listing in self.connector.changes(cursor):
            entries = tuple(replace(page, space=self.names[page.space]) for page in listing.entries)
            spaces_gone = tuple(self.names[space] for space in listing.spaces_gone)
            yield replace(listing, entries=entries, spaces_gone=spaces_gone)

    async def fetch(self, entry: ConnectorEntry) -> NewDocument:
        return await self.connector.fetch(entry)

    async def close(self) -> None:
        await self.connector.close()


def id_of(name: str) -> str:
    """A name that servers take which know few letters."""
    plain = name.replace(" ", "_").lower()
    is_plain = plain.replace("_", "").isalnum() and plain.isascii()
    return plain if is_plain else f"n{name.encode().hex()}"
