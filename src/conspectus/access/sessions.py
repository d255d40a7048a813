"""Sessions of browsers: a login with a key, of which the browser has a token of its own.

A token opens a session as long as its key is valid, until it expires, was not used for long, or is ended.
"""

import hmac
import re
import secrets
from datetime import datetime, timedelta
from typing import Final

from conspectus.access.keys import NO_HASH, hash_of, person_of
from conspectus.errors import PermissionDenied, Unauthenticated
from conspectus.model.access import Person, Session
from conspectus.ports import Clock
from conspectus.ports.accounts import Accounts

MAX_USE_INTERVAL: Final = timedelta(minutes=1)
USES_PER_IDLE: Final = 4
"""How often the use of a session is stored in the time after which an unused one ends."""
MAX_LIFETIME: Final = timedelta(days=3_650)

_SHAPE = re.compile(r"css_([0-9a-f]{32})_[0-9a-f]{64}")


class Sessions:
    """Starts, authenticates and ends sessions, in any process of a store.

    A token has 256 random bits and cannot be guessed, so a single SHA-256 protects it.
    """

    def __init__(self, accounts: Accounts, clock: Clock, *, lifetime: timedelta, max_idle: timedelta) -> None:
        self._accounts = accounts
        self._clock = clock
        self._lifetime = min(lifetime, MAX_LIFETIME)
        self._max_idle = min(max_idle, MAX_LIFETIME)

    async def start(self, person: Person) -> str:
        """Return the token of a new session of the key of a request. Raises PermissionDenied without one."""
        if person.key is None:
            raise PermissionDenied("log in", "an API key")
        number, now = secrets.token_hex(16), self._clock()
        token = f"css_{number}_{secrets.token_hex(32)}"
        session = Session(number, person.key, person.id, now, now + self._lifetime, now)
        await self._accounts.add_session(session, hash_of(token))
        return token

    async def authenticate(self, token: str) -> Person:
        """Return the user of a session with the scopes of its key. Raises Unauthenticated."""
        session = await self._session(token)
        stored = await self._accounts.key(session.key)
        if stored is None:
            raise Unauthenticated
        key, _, user = stored
        now = self._clock()
        if not self.is_open(session, now) or user.disabled or not key.valid(now):
            raise Unauthenticated
        if now - session.last_used >= min(MAX_USE_INTERVAL, self._max_idle / USES_PER_IDLE):
            await self._accounts.session_used(session.id, now)
        return person_of(user, key)

    def is_open(self, session: Session, at: datetime) -> bool:
        """Return whether a session has neither expired nor been unused for too long."""
        return at < session.expires and at - session.last_used <= self._max_idle

    async def end(self, token: str) -> None:
        """End the session of a token; one that opens nothing ends nothing."""
        try:
            session = await self._session(token)
        except Unauthenticated:
            return
        await self._accounts.end_session(session.id)

    async def _session(self, token: str) -> Session:
        shape = _SHAPE.fullmatch(token)
        if shape is None:
            raise Unauthenticated
        stored = await self._accounts.session(shape[1])
        fits = hmac.compare_digest(hash_of(token), NO_HASH if stored is None else stored[1])
        if stored is None or not fits:
            raise Unauthenticated
        return stored[0]
