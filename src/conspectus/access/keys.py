"""API keys: made, told apart, and checked so that neither content nor time tells which ids there are."""

import asyncio
import hashlib
import re
import secrets
from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime, timedelta

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from conspectus.errors import Unauthenticated
from conspectus.model.access import Key, Person, User
from conspectus.model.ids import KeyId
from conspectus.ports import Clock
from conspectus.ports.accounts import Accounts

MEMORY_KIB = 19_456
PASSES = 2
"""A secret has 256 random bits, so the cost protects against nothing that guesses; it is what OWASP names
as least for passwords that people choose."""
AT_ONCE = 2
"""Checks that may take that memory at the same time; the others wait."""
REMEMBERED = 10_000
NOTED_EVERY = timedelta(minutes=1)
NO_KEY = "$argon2id$v=19$m=19456,t=2,p=1$DdNvOe8C8AnYBKfHbgEpZQ$NK2ItnVrmrmD0zWyfwCV1IRarwqPU+Gpb+VC6Baaw6E"
"""What is checked for an id that no key has, so that it takes as long: the hash of a secret thrown away."""

_SHAPE = re.compile(r"csp_([0-9a-f]{16})_[0-9a-f]{64}")


@dataclass(slots=True)
class Proven:
    """The stored hash that a secret fitted, and when its use was last written down."""

    hash: str
    noted: datetime | None


class Keys:
    """Makes secrets and says whose they are.

    A secret that fitted its hash is remembered (as a digest) so that the slow check runs once; whether its
    key is still good is read from the store each time.
    """

    def __init__(self, accounts: Accounts, clock: Clock) -> None:
        self._accounts = accounts
        self._clock = clock
        self._hasher = PasswordHasher(time_cost=PASSES, memory_cost=MEMORY_KIB, parallelism=1)
        self._proven: OrderedDict[bytes, Proven] = OrderedDict()
        self._checks = asyncio.Semaphore(AT_ONCE)

    async def made(self) -> tuple[KeyId, str, str]:
        """A new key's id, the whole secret to be shown once, and the hash to be stored."""
        number = KeyId(secrets.token_hex(8))
        secret = f"csp_{number}_{secrets.token_hex(32)}"
        return number, secret, await asyncio.to_thread(self._hasher.hash, secret)

    async def person(self, secret: str) -> Person:
        """Whose key it is, with the key's scopes. Raises Unauthenticated, without saying why."""
        shape = _SHAPE.fullmatch(secret)
        if shape is None:
            raise Unauthenticated
        found = await self._accounts.key(KeyId(shape[1]))
        digest = hashlib.sha256(secret.encode()).digest()
        fits = await self._fits(digest, secret, NO_KEY if found is None else found[1])
        if found is None or not fits:
            raise Unauthenticated
        key, stored, user = found
        now = self._clock()
        if user.disabled or not key.valid(now):
            raise Unauthenticated
        await self._note(digest, stored, key=key, now=now)
        return person_of(user, key)

    async def _fits(self, digest: bytes, secret: str, stored: str) -> bool:
        proven = self._proven.get(digest)
        if proven is not None and proven.hash == stored:
            return True
        async with self._checks:
            return await asyncio.to_thread(self._verified, stored, secret)

    def _verified(self, stored: str, secret: str) -> bool:
        try:
            return self._hasher.verify(stored, secret)
        except (VerificationError, InvalidHashError):
            return False

    async def _note(self, digest: bytes, stored: str, *, key: Key, now: datetime) -> None:
        """Remember that the secret fits, and write its use down if that was not done lately."""
        proven = self._proven.setdefault(digest, Proven(stored, key.last_used))
        self._proven.move_to_end(digest)
        if len(self._proven) > REMEMBERED:
            self._proven.popitem(last=False)
        proven.hash = stored
        if proven.noted is None or now - proven.noted >= NOTED_EVERY:
            proven.noted = now
            await self._accounts.used(key.id, now)


def person_of(user: User, key: Key) -> Person:
    """The person that comes with a key of the user."""
    return Person(user.name, user.owner, user.id, key.scopes, key.id)
