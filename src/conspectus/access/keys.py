"""API keys. Neither the error nor the duration of a check reveals which key ids exist."""

from collections import OrderedDict
from datetime import datetime, timedelta
from typing import Final

from conspectus.access.tokens import KEYS, has_hash, hash_of
from conspectus.errors import Unauthenticated
from conspectus.model.access import Key, Person, User
from conspectus.model.ids import KeyId
from conspectus.ports import Clock
from conspectus.ports.accounts import Accounts

MAX_REMEMBERED_KEYS: Final = 10_000
"""Maximum number of keys whose last use is in memory."""
MIN_USE_INTERVAL: Final = timedelta(minutes=1)
"""Minimum time between two stored uses of a key."""


class Keys:
    """Creates secrets and authenticates their users."""

    def __init__(self, accounts: Accounts, clock: Clock) -> None:
        self._accounts = accounts
        self._clock = clock
        self._last_written: OrderedDict[KeyId, datetime | None] = OrderedDict()

    async def new_secret(self) -> tuple[KeyId, str, str]:
        """Return the id of a new key, its secret, which is shown once, and the hash to store."""
        id, secret = KEYS.create()
        return KeyId(id), secret, hash_of(secret)

    async def person(self, secret: str) -> Person:
        """Return the user of a key with the key's scopes. Raises Unauthenticated without a reason."""
        id = KEYS.read_id(secret)
        if id is None:
            raise Unauthenticated
        stored = await self._accounts.key(KeyId(id))
        if not has_hash(secret, None if stored is None else stored[1]) or stored is None:
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


def person_of(user: User, key: Key) -> Person:
    """Return a user with the scopes and the origin of a key."""
    return Person(user.name, user.owner, user.id, key.scopes, key.id, key.origin)
