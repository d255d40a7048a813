"""Logins of browsers: their sessions, and invitations for users without a key."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Final

from conspectus.access.policy import (
    order_scopes,
    require_future,
    require_lasting_key,
    require_own_origin,
    require_owner,
    require_owner_in_person,
    require_scopes,
)
from conspectus.access.tokens import hash_of
from conspectus.engine.account_holders import find_holder, read_request_key
from conspectus.engine.service import Service
from conspectus.errors import NotFound
from conspectus.model.access import Invitation, NewInvitation, Person, Scope, Session
from conspectus.model.annotations import Example, Length
from conspectus.model.parameters import InvitationIdentifier, SessionIdentifier, UserName
from conspectus.model.query import EVERYWHERE

INVITATION_PATH: Final = "/console/#invitation="
"""What follows the address of the server in an invitation's link. A fragment is in no log of a server."""


class LoginService(Service):
    """Sessions of browsers, and invitations with which users without a key log in."""

    async def list_sessions(
        self,
        user: Annotated[str | None, "Name or id of the user; none: you, `*`: all.", Example("ann")] = None,
    ) -> Sequence[Session]:
        """List your open sessions of browsers, newest first; the owner account may list those of any user."""
        if user == EVERYWHERE:
            require_owner(self._person, "see the sessions of others")
            sessions = await self._parts.accounts.sessions()
        else:
            holder = await find_holder(self._context, user, "see sessions")
            sessions = await self._parts.accounts.sessions(holder)
        now = self._parts.clock()
        return [session for session in sessions if self._core.sessions.is_open(session, now)]

    async def end_session(self, session: SessionIdentifier) -> None:
        """End a session of a browser; its next request is refused.

        Raises NotFound, or PermissionDenied if it has scopes that yours has not.
        """
        require_own_origin(self._person, "end a session")
        stored = await self._parts.accounts.session(session)
        if stored is None or not (self._person.owner or stored[0].user == self._person.id):
            raise NotFound("session", session)
        ended, _, holder = stored
        require_scopes(self._person, ended.scopes, "end a session of that scope")
        change = self._context.change("end_session", session, holder.name)
        await self._parts.accounts.end_session(session, change)

    async def create_invitation(
        self,
        user: UserName,
        *,
        scopes: Annotated[
            Sequence[Scope],
            Length(1, 3),
            "What the user may do when logged in; none: what their roles need.",
        ]
        | None = None,
        expires: Annotated[datetime | None, "Instant at which it expires; by default as set."] = None,
    ) -> NewInvitation:
        """Create a link with which a user logs in to the console once, without a key.

        Send it to the user over a channel that you trust: who opens it first is logged in. Only the owner
        account may do this. Raises NotFound, InvalidInput, or PermissionDenied if the key of the request
        expires before the invitation and a session that begins with it.
        """
        require_owner_in_person(self._person, "invite users")
        invited = await self._directory.user(user)
        needed = await self._authorized.choose_scopes(invited)
        granted = order_scopes([scope for scope in needed if scope in self._person.scopes], scopes)
        require_scopes(self._person, granted, "invite a user with that")
        settings = self._parts.settings
        end = expires or self._parts.clock() + timedelta(hours=settings.invitation_hours)
        require_future(end, self._parts.clock())
        key = await read_request_key(self._context)
        require_lasting_key(key, end + self._core.sessions.lifetime, "invite users")
        invitation, token = self._core.invitations.create(invited.id, granted, end)
        change = self._context.change(
            "create_invitation",
            invitation.id,
            invited.name,
            detail=f"scopes {' '.join(granted)}; expires {end.isoformat()}",
        )
        await self._parts.accounts.add_invitation(invitation, hash_of(token), change)
        return NewInvitation(invitation, token, f"{settings.own_address}{INVITATION_PATH}{token}")

    async def list_invitations(self) -> Sequence[Invitation]:
        """List the invitations that nobody has accepted, newest first. Only the owner account may do this."""
        require_owner(self._person, "see invitations")
        now = self._parts.clock()
        invitations = await self._parts.accounts.invitations()
        return [invitation for invitation in invitations if now < invitation.expires]

    async def withdraw_invitation(self, invitation: InvitationIdentifier) -> None:
        """Withdraw an invitation that nobody has accepted. Only the owner account may. Raises NotFound."""
        require_owner_in_person(self._person, "withdraw invitations")
        stored = await self._parts.accounts.invitation(invitation)
        if stored is None:
            raise NotFound("invitation", invitation)
        invited = await self._directory.user(stored[0].user)
        change = self._context.change("withdraw_invitation", invitation, invited.name)
        await self._parts.accounts.withdraw_invitation(invitation, change)

    async def accept_invitation(self, token: str) -> tuple[Person, str]:
        """Return the invited user and the token of a new session, for servers. Raises Unauthenticated."""
        return await self._core.invitations.accept(token)
