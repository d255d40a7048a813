"""Sessions of browsers: a login, of which the browser has a token of its own.

A token opens a session until it expires, was not used for long, or is ended, and as long as the user has
access and the key of the login is valid.
"""

from datetime import datetime, timedelta
from typing import Final

from conspectus.access.tokens import SESSIONS, has_hash, hash_of
from conspectus.errors import PermissionDenied, Unauthenticated
from conspectus.model.access import Person, Session, User
from conspectus.ports import Clock
from conspectus.ports.accounts import Accounts

MAX_USE_INTERVAL: Final = timedelta(minutes=1)
USES_PER_IDLE: Final = 4
"""How often the use of a session is stored in the time after which an unused one ends."""
MAX_LIFETIME: Final = timedelta(days=3_650)


class Sessions:
    """Starts, authenticates and ends sessions, in any process of a store."""

    def __init__(self, accounts: Accounts, clock: Clock, *, lifetime: timedelta, max_idle: timedelta) -> None:
        self._accounts = accounts
        self._clock = clock
        self.lifetime = min(lifetime, MAX_LIFETIME)
        self._max_idle = min(max_idle, MAX_LIFETIME)

    async def start(self, person: Person) -> str:
        """Return the token of a new session of the key of a request. Raises PermissionDenied without one."""
        if person.key is None:
            raise PermissionDenied("log in", "an API key")
        session, token = self.create(person)
        await self._accounts.add_session(session, hash_of(token))
        return token

    def create(
        self,
        person: Person,
        *,
        max_lifetime: timedelta = MAX_LIFETIME,
        issuer_session: str | None = None,
    ) -> tuple[Session, str]:
        """Return a new session of a person, which is not stored, and its token."""
        id, token = SESSIONS.create()
        now = self._clock()
        session = Session(
            id=id,
            user=person.id,
            scopes=person.scopes,
            created=now,
            expires=now + min(self.lifetime, max_lifetime),
            last_used=now,
            key=person.key,
            origin=person.origin,
            identity=person.identity,
            issuer_session=issuer_session,
        )
        return session, token

    async def authenticate(self, token: str) -> Person:
        """Return the user of a session with its scopes. Raises Unauthenticated."""
        session, user = await self._session(token)
        now = self._clock()
        if not self.is_open(session, now) or user.disabled or not await self._has_valid_key(session, now):
            raise Unauthenticated
        if now - session.last_used >= min(MAX_USE_INTERVAL, self._max_idle / USES_PER_IDLE):
            await self._accounts.session_used(session.id, now)
        return Person(
            name=user.name,
            owner=user.owner,
            id=user.id,
            scopes=session.scopes,
            key=session.key,
            origin=session.origin,
            session=session.id,
            identity=session.identity,
        )

    def is_open(self, session: Session, at: datetime) -> bool:
        """Return whether a session has neither expired nor been unused for too long."""
        return at < session.expires and at - session.last_used <= self._max_idle

    async def end(self, token: str) -> None:
        """End the session of a token; one that opens nothing ends nothing."""
        try:
            session, _ = await self._session(token)
        except Unauthenticated:
            return
        await self._accounts.end_session(session.id)

    async def _session(self, token: str) -> tuple[Session, User]:
        id = SESSIONS.read_id(token)
        if id is None:
            raise Unauthenticated
        stored = await self._accounts.session(id)
        if not has_hash(token, None if stored is None else stored[1]) or stored is None:
            raise Unauthenticated
        session, _, user = stored
        return session, user

    async def _has_valid_key(self, session: Session, now: datetime) -> bool:
        """Return whether the key of a session is valid; one without a key needs none."""
        if session.key is None:
            return True
        stored = await self._accounts.key(session.key)
        return stored is not None and stored[0].valid(now)
