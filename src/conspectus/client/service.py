"""The base of all services of a remote engine: the transport, and readers of local files."""

from collections.abc import Callable
from typing import TypeVar

from conspectus.client.transport import Transport
from conspectus.ports import Archives, Files

S = TypeVar("S")


class RemoteService:
    """A group of operations of a server, with the permissions of the API key."""

    def __init__(self, channel: Transport, files: Files, archives: Archives) -> None:
        self._channel = channel
        self._files = files
        self._archives = archives

    def _sibling(self, kind: Callable[[Transport, Files, Archives], S]) -> S:
        """Return another service of the same server."""
        return kind(self._channel, self._files, self._archives)
