"""The port to an identity provider: checked signatures of its tokens."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class TokenFault(Exception):
    """A token is refused. `code` is stable and for the log; the client is not told."""

    def __init__(self, code: str, detail: str = "") -> None:
        super().__init__(code)
        self.code = code
        self.detail = detail


class TokenVerifier(Protocol):
    """Checks signatures with the keys that the issuer publishes."""

    async def verify(self, token: str) -> Mapping[str, Any]:
        """Return the claims of a token that the issuer has signed. Raises TokenFault."""

    async def find_problems(self) -> Sequence[str]:
        """Ask the issuer, and return a sentence for each problem of its configuration."""

    async def close(self) -> None:
        """Release connections."""
