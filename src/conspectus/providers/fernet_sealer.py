"""Credentials sealed with Fernet of `cryptography`, which encrypts with AES and authenticates with HMAC."""

import json
from collections.abc import Mapping, Sequence

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from conspectus.errors import InvalidInput


class FernetSealer:
    """The port `Sealer`. The first of the keys seals, and each opens what it has sealed.

    Raises InvalidInput for a key that is not 32 bytes in URL-safe Base64, without repeating it.
    """

    def __init__(self, keys: Sequence[str]) -> None:
        try:
            fernets = [Fernet(key) for key in keys]
        except ValueError:
            raise InvalidInput(
                "secret_key", "has a key that is not 32 random bytes in URL-safe Base64"
            ) from None
        self._newest = fernets[0]
        self._any = MultiFernet(fernets)

    def seal(self, connection: str, credentials: Mapping[str, str]) -> str:
        """Return the credentials of a connection, encrypted and authenticated with the newest key."""
        envelope = {"connection": connection, "credentials": dict(credentials)}
        return self._newest.encrypt(json.dumps(envelope).encode()).decode()

    def unseal(self, connection: str, sealed: str) -> Mapping[str, str] | None:
        """Return the credentials; None if no key opens them, or if they are those of another connection."""
        try:
            envelope = json.loads(self._any.decrypt(sealed.encode()))
        except InvalidToken:
            return None
        if envelope["connection"] != connection:
            return None
        credentials: Mapping[str, str] = envelope["credentials"]
        return credentials

    def is_newest(self, sealed: str) -> bool:
        """Return whether the newest key opens them."""
        try:
            self._newest.decrypt(sealed.encode())
        except InvalidToken:
            return False
        return True
