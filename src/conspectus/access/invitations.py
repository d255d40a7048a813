"""Invitations: a token with which a user without a key logs in, once."""

from datetime import datetime
from uuid import uuid4

from conspectus.access.sessions import Sessions
from conspectus.access.tokens import INVITATIONS, has_hash, hash_of
from conspectus.errors import NotFound, Unauthenticated
from conspectus.model.access import AccountChange, Invitation, Person, Scope
from conspectus.model.ids import UserId
from conspectus.ports import Clock
from conspectus.ports.accounts import Accounts


class Invitations:
    """Creates and accepts invitations, in any process of a store."""

    def __init__(self, accounts: Accounts, clock: Clock, sessions: Sessions) -> None:
        self._accounts = accounts
        self._clock = clock
        self._sessions = sessions

    def create(self, user: UserId, scopes: tuple[Scope, ...], expires: datetime) -> tuple[Invitation, str]:
        """Return a new invitation, which is not stored, and its token."""
        id, token = INVITATIONS.create()
        return Invitation(id, user, scopes, self._clock(), expires), token

    async def accept(self, token: str) -> tuple[Person, str]:
        """Return the invited user and the token of their new session; the invitation is used up.

        Raises Unauthenticated for an unknown, used, withdrawn or expired one, and for a disabled user.
        """
        id = INVITATIONS.read_id(token)
        if id is None:
            raise Unauthenticated
        stored = await self._accounts.invitation(id)
        if not has_hash(token, None if stored is None else stored[1]) or stored is None:
            raise Unauthenticated
        invitation = stored[0]
        user = await self._accounts.user(invitation.user)
        if user is None or user.disabled or self._clock() >= invitation.expires:
            raise Unauthenticated
        person = Person(user.name, user.owner, user.id, invitation.scopes)
        session, session_token = self._sessions.create(person)
        change = self._describe_login(person, invitation)
        try:
            await self._accounts.accept_invitation(id, session, hash_of(session_token), change)
        except NotFound:
            raise Unauthenticated from None
        return person, session_token

    def _describe_login(self, person: Person, invitation: Invitation) -> AccountChange:
        return AccountChange(
            id=str(uuid4()),
            actor=person.id,
            actor_name=person.name,
            key=None,
            action="accept_invitation",
            subject=invitation.id,
            subject_name=person.name,
            collection=None,
            detail=f"scopes {' '.join(invitation.scopes)}",
            created=self._clock(),
        )
