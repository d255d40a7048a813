"""Tokens: secrets that are shown once, and of which only a hash is stored.

A token has 256 random bits and cannot be guessed, so a single SHA-256 protects it.
"""

import hashlib
import hmac
import re
import secrets
from typing import Final

from conspectus.deferred import dataclass

_NO_HASH: Final = "0" * 64
"""Compared for an unknown token, so that the check takes equally long."""
_SECRET_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class TokenKind:
    """The tokens of one kind: `<prefix>_<id>_<secret>`, with an id of so many random bytes."""

    prefix: str
    id_bytes: int

    def create(self) -> tuple[str, str]:
        """Return a new id and a token with it."""
        id = secrets.token_hex(self.id_bytes)
        return id, f"{self.prefix}_{id}_{secrets.token_hex(_SECRET_BYTES)}"

    def read_id(self, token: str) -> str | None:
        """Return the id in a token; None for what is no token of this kind."""
        id, secret = (f"[0-9a-f]{{{2 * count}}}" for count in (self.id_bytes, _SECRET_BYTES))
        match = re.fullmatch(f"{re.escape(self.prefix)}_({id})_{secret}", token)
        return None if match is None else match[1]


KEYS: Final = TokenKind("csp", 8)
SESSIONS: Final = TokenKind("css", 16)
INVITATIONS: Final = TokenKind("csi", 16)


def hash_of(token: str) -> str:
    """Return the hash of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def has_hash(token: str, stored_hash: str | None) -> bool:
    """Return whether a token has the stored hash; with None, False after the same time."""
    compared = _NO_HASH if stored_hash is None else stored_hash
    is_equal = hmac.compare_digest(hash_of(token).encode(), compared.encode("utf-8", "surrogatepass"))
    return is_equal and stored_hash is not None
