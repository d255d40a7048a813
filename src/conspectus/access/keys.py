"""API keys. Neither the error nor the duration of a check reveals which key ids exist."""

import hashlib
import hmac
import re
import secrets
from collections import OrderedDict
from datetime import datetime, timedelta
from typing import Final

from conspectus.errors import Unauthenticated
from conspectus.model.access import Key, Person, User
from conspectus.model.ids import KeyId
from conspectus.ports import Clock
from conspectus.ports.accounts import Accounts

MAX_REMEMBERED_KEYS: Final = 10_000
"""Maximum number of keys whose last use is in memory."""
MIN_USE_INTERVAL: Final = timedelta(minutes=1)
"""Minimum time between two stored uses of a key."""
NO_HASH: Final = "0" * 64
"""Compared for an unknown id, so that the check takes equally long."""
_SHAPE = re.compile(r"csp_([0-9a-f]{16})_[0-9a-f]{64}")


class Keys:
    """Creates secrets and authenticates their users.

    A secret has 256 random bits and cannot be guessed, so a single SHA-256 protects it.
    """

    def __init__(self, accounts: Accounts, clock: Clock) -> None:
        self._accounts = accounts
        self._clock = clock
        self._last_written: OrderedDict[KeyId, datetime | None] = OrderedDict()

    async def new_secret(self) -> tuple[KeyId, str, str]:
        """Return the id of a new key, its secret, which is shown once, and the hash to store."""
        number = KeyId(secrets.token_hex(8))
        secret = f"csp_{number}_{secrets.token_hex(32)}"
        return number, secret, hash_of(secret)

    async def person(self, secret: str) -> Person:
        """Return the user of a key with the key's scopes. Raises Unauthenticated without a reason."""
        shape = _SHAPE.fullmatch(secret)
        if shape is None:
            raise Unauthenticated
        stored = await self._accounts.key(KeyId(shape[1]))
        fits = hmac.compare_digest(hash_of(secret), NO_HASH if stored is None else stored[1])
        if stored is None or not fits:
            raise Unauthenticated
        key, _, user = stored
        now = self._clock()
        if user.disabled or not key.valid(now):
            raise Unauthenticated
        await self._record_use(key, now)
        return person_of(user, key)

    async def _record_use(self, key: Key, now: datetime) -> None:
        """Store the time of use, if the last one is old."""
        last_written = self._last_written.setdefault(key.id, key.last_used)
        self._last_written.move_to_end(key.id)
        if len(self._last_written) > MAX_REMEMBERED_KEYS:
            self._last_written.popitem(last=False)
        if last_written is None or now - last_written >= MIN_USE_INTERVAL:
            self._last_written[key.id] = now
            await self._accounts.note_key_use(key.id, now)


def hash_of(secret: str) -> str:
    """Return the hash of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def person_of(user: User, key: Key) -> Person:
    """Return a user with the scopes and the origin of a key."""
    return Person(user.name, user.owner, user.id, key.scopes, key.id, key.origin)
