"""What the kit asks of the server of a connector: its users change pages, and it answers their questions."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from conspectus.ports.connectors import Connector


class PageStore(Protocol):
    """A store that a connector reads, as its own users change it."""

    async def put(self, space: str, name: str, text: str) -> None:
        """Make or change a page; a new space comes with its first page."""

    async def delete(self, space: str, name: str) -> None:
        """Delete a page."""

    async def move(self, space: str, name: str, *, to_space: str, to_name: str) -> None:
        """Give a page another space or name; its text stays."""

    async def remove_space(self, space: str) -> None:
        """Delete a space with all its pages."""

    def connect(self) -> Connector:
        """A new connector, as after a restart; it lists at most two pages in a batch."""


@runtime_checkable
class ConnectedServer(PageStore, Protocol):
    """A store that an engine connects with: the installed kind, its options and its credentials."""

    kind: str
    options: Mapping[str, Any]
    credentials: Mapping[str, str]


@runtime_checkable
class Interruptible(Protocol):
    """A server that can stop in the middle of a sync. `HttpGate` does it for every server that speaks HTTP.

    `requests` counts what connectors have asked so far.
    """

    requests: int

    def stop_after(self, requests: int | None) -> None:
        """Answer so many more requests of connectors, and none after them; None: all."""


@runtime_checkable
class Throttling(Protocol):
    """A server that can ask its clients to slow down."""

    def throttle(self, requests: int, retry_after: str | None) -> None:
        """Answer so many requests of connectors with 429, with this `Retry-After`, if any."""


@runtime_checkable
class GuardedServer(ConnectedServer, Protocol):
    """A server with permissions. `people` and `groups` are named as the connector names them.

    A server that knows rights of whole spaces alone shares the space of a page with the page.
    """

    people: Sequence[str]
    groups: Sequence[str]

    async def share(self, space: str, name: str, viewers: frozenset[str]) -> None:
        """Let these people and groups read a page, and nobody else; `EVERYONE` may be among them."""

    async def set_members(self, group: str, members: frozenset[str]) -> None:
        """Replace the members of a group."""

    async def may_read(self, person: str, space: str, name: str) -> bool:
        """Ask the server for a page as this person. The answer is the server's, not that of a model of it."""
