"""The tokens with which an identity provider manages users and groups by SCIM."""

from typing import Final

from conspectus.access.tokens import has_hash, hash_of
from conspectus.errors import InvalidInput, Unauthenticated
from conspectus.settings import Settings

MIN_TOKEN_LENGTH: Final = 32
MAX_TOKENS: Final = 2
"""The token, and the one before it while the provider is given the new one."""


class ScimTokens:
    """The tokens of the settings, of which only hashes stay in memory. Without any, SCIM is off."""

    def __init__(self, settings: Settings) -> None:
        tokens = [token.strip() for token in settings.scim_token.split(",") if token.strip()]
        if len(tokens) > MAX_TOKENS or any(len(token) < MIN_TOKEN_LENGTH for token in tokens):
            raise InvalidInput(
                "scim_token", f"must be one or two tokens of {MIN_TOKEN_LENGTH} characters or more"
            )
        self._hashes = [hash_of(token) for token in tokens]

    def __bool__(self) -> bool:
        """Whether SCIM is on."""
        return bool(self._hashes)

    def require(self, secret: str | None) -> None:
        """Raise Unauthenticated unless a secret is one of the tokens."""
        matches = [has_hash(secret or "", stored_hash) for stored_hash in self._hashes]
        if not any(matches):
            raise Unauthenticated
