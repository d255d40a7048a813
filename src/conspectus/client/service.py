"""What every service of a remote engine has: the way to the server, and what can be read on this machine."""

from collections.abc import Callable
from typing import TypeVar

from conspectus.client.transport import Transport
from conspectus.ports import Archives, Files

S = TypeVar("S")


class RemoteService:
    """A group of operations on a server, as the holder of the key may use it."""

    def __init__(self, channel: Transport, files: Files, archives: Archives) -> None:
        self._channel = channel
        self._files = files
        self._archives = archives

    def _beside(self, kind: Callable[[Transport, Files, Archives], S]) -> S:
        """Another service of the same server."""
        return kind(self._channel, self._files, self._archives)
