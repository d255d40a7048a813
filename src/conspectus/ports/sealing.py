"""The port that seals credentials with a key that the store does not have."""

from collections.abc import Mapping
from typing import Protocol


class Sealer(Protocol):
    """Seals the credentials of connections, each for its connection only."""

    def seal(self, connection: str, credentials: Mapping[str, str]) -> str:
        """Return the credentials of a connection, encrypted and authenticated with the newest key."""

    def unseal(self, connection: str, sealed: str) -> Mapping[str, str] | None:
        """Return the credentials; None if no key opens them, or if they are those of another connection."""

    def is_newest(self, sealed: str) -> bool:
        """Return whether the newest key opens them."""
