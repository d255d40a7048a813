"""The ports to an identity provider: checked signatures of its tokens, and sign-in on its pages."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

from conspectus.model.identities import SignInAttempt

TokenUse: TypeAlias = Literal["access", "id", "logout"]
"""What a token is for. One of another use is refused where its header says so."""


class TokenFault(Exception):
    """A token is refused. `code` is stable and for the log; the client is not told."""

    def __init__(self, code: str, detail: str = "") -> None:
        super().__init__(code)
        self.code = code
        self.detail = detail


class TokenVerifier(Protocol):
    """Checks signatures with the keys that the issuer publishes."""

    async def verify(self, token: str, use: TokenUse = "access") -> Mapping[str, Any]:
        """Return the claims of a token that the issuer has signed. Raises TokenFault."""

    async def find_problems(self) -> Sequence[str]:
        """Ask the issuer, and return a sentence for each problem of its configuration."""

    async def close(self) -> None:
        """Release connections."""


class GroupDirectory(Protocol):
    """Reads groups of a directory."""

    async def read_members(self, groups: Sequence[str]) -> Mapping[str, frozenset[str] | None]:
        """Return the subjects of the members of each group, nested ones included; None: it is deleted.

        Raises FetchFailed if any of them may not be complete, and InvalidInput for a name that is none.
        """

    async def find_problems(self) -> Sequence[str]:
        """Ask the directory, and return a sentence for each problem of its configuration."""


class CodeFlow(Protocol):
    """Sign-in on the pages of the provider: the authorization code flow with PKCE."""

    async def sign_in_address(self, attempt: SignInAttempt) -> str:
        """Return the address to which a browser is sent. Raises TokenFault if the provider is away."""

    async def exchange(self, code: str, attempt: SignInAttempt) -> str:
        """Return the ID token for a code, which nobody has verified yet. Raises TokenFault."""

    async def sign_out_address(self, back: str) -> str | None:
        """Return the address that ends the session at the provider; None if it has none or is away."""

    async def find_problems(self) -> Sequence[str]:
        """Ask the provider, and return a sentence for each problem of its configuration."""

    async def close(self) -> None:
        """Release connections."""
