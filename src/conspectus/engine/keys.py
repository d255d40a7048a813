"""API keys."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Annotated

from conspectus.access.account_names import label_text
from conspectus.access.policy import (
    order_scopes,
    require_future,
    require_owner,
    require_scope,
    require_within,
)
from conspectus.engine.account_holders import find_holder, read_request_key
from conspectus.engine.owner_account import ensure_owner_account
from conspectus.engine.service import Service
from conspectus.errors import Conflict, InvalidInput, NotFound
from conspectus.model.access import SCOPES, AccountChange, Expiry, Key, NewKey, Person, Scope, User
from conspectus.model.annotations import Example, Length
from conspectus.model.ids import LOCAL, KeyId, UserId
from conspectus.model.parameters import KeyIdentifier
from conspectus.model.query import EVERYWHERE
from conspectus.model.trust import Origin, least_trusted

MAX_KEY_DAYS = 36_500


class KeyService(Service):
    """API keys."""

    async def create(
        self,
        user: Annotated[str | None, "Name or id of the user; by default you.", Example("ann")] = None,
        *,
        label: Annotated[str, Length(0, 100), "Label of the key.", Example("laptop")] = "",
        scopes: Annotated[
            Sequence[Scope],
            Length(1, 3),
            "What the key may be used for; none: what the roles of the user need.",
        ]
        | None = None,
        expires: Annotated[
            Expiry | None, "Instant at which it expires, or `never`; by default as set."
        ] = None,
        origin: Annotated[Origin | None, "Origin of all that is written with the key."] = None,
    ) -> NewKey:
        """Create an API key for oneself, or as the owner account for another user. Its secret is shown once.

        Without `scopes`, it has those that the roles of the user need: `read` and `write`, and `admin` for
        owners and managers. Without `expires`, it expires after the days of the settings, and one of the
        owner account never does. What is written with it has at most the level of `origin` (None: of the
        user), for example `web` for a crawler. A key cannot have more scopes, a later expiry or a higher
        level than the key of the request. Raises PermissionDenied, NotFound or InvalidInput.
        """
        if self._person.owner:
            await ensure_owner_account(self._context)
        holder = await self._directory.user(await self._key_holder(user, "make a key"))
        request_key = await read_request_key(self._context)
        key = Key(
            id=KeyId(""),
            user=holder.id,
            label=self._context.screen_value("keys.label", label_text(label)),
            scopes=await self._scopes(scopes, holder),
            created=self._parts.clock(),
            expires=self._expiry(expires, holder, request_key),
            origin=self._at_most_own_origin(origin),
        )
        require_within(self._person, request_key, key, "make a key for that")
        return await self._new_key(key, "create_key")

    async def list(
        self,
        user: Annotated[str | None, "Name or id of the user; none: you, `*`: all.", Example("ann")] = None,
    ) -> Sequence[Key]:
        """List your API keys, oldest first; the owner account may list those of any user, or all with `*`."""
        if user == EVERYWHERE:
            require_owner(self._person, "see the keys of others")
            return await self._parts.accounts.keys()
        return await self._parts.accounts.keys(await self._key_holder(user, "see keys"))

    async def revoke(self, key: KeyIdentifier) -> Key:
        """Revoke an API key; the next request with it is refused.

        Raises NotFound, or PermissionDenied if it may do more than yours.
        """
        stored_key = await self._require_changeable_key(key, "revoke a key")
        change = await self._describe_key_change("revoke_key", stored_key)
        return await self._parts.accounts.revoke_key(stored_key.id, self._parts.clock(), change)

    async def rotate(self, key: KeyIdentifier) -> NewKey:
        """Replace an API key by a new one with the same label, scopes and expiry; the old one is revoked.

        Raises NotFound, PermissionDenied if it may do more than yours, or Conflict if it is not valid.
        """
        old = await self._require_changeable_key(key, "renew a key")
        now = self._parts.clock()
        if not old.valid(now):
            raise Conflict("key", key, "is not valid any more; create a new one")
        renewed = replace(old, created=now, last_used=None, origin=self._at_most_own_origin(old.origin))
        new_key = await self._new_key(renewed, "rotate_key", f"replaces {old.id}")
        revoked_key = await self._parts.accounts.revoke_key(old.id, now)
        if revoked_key.revoked != now:
            await self._parts.accounts.revoke_key(new_key.key.id, now)
            raise Conflict("key", key, "was revoked meanwhile; create a new one")
        return new_key

    async def authenticate(self, secret: str) -> Person:
        """Return the person of an API key, for servers. Raises Unauthenticated."""
        return await self._core.keys.person(secret)

    async def create_first(self) -> NewKey | None:
        """Create the owner account with a first API key, if there is no key yet."""
        require_owner(self._person, "make the owner account")
        if await self._parts.accounts.keys():
            return None
        await ensure_owner_account(self._context)
        first = Key(KeyId(""), LOCAL, "first key", SCOPES, self._parts.clock())
        return await self._new_key(first, "create_key")

    async def _key_holder(self, user: str | None, action: str) -> UserId:
        """Return the user whose keys are meant: oneself; the owner account may name any user."""
        require_scope(self._person, "admin", action)
        return await find_holder(self._context, user, action)

    async def _scopes(self, scopes: Sequence[Scope] | None, holder: User) -> tuple[Scope, ...]:
        """Return the scopes of a new key in order; if none are given, those that its user needs."""
        needed = await self._authorized.choose_scopes(holder)
        return order_scopes([scope for scope in needed if scope in self._person.scopes], scopes)

    def _expiry(self, expires: Expiry | None, holder: User, request_key: Key | None) -> datetime | None:
        """Return when a new key expires; without a time, at the latest with the key of the request."""
        now, days = self._parts.clock(), min(self._parts.settings.key_days, MAX_KEY_DAYS)
        if isinstance(expires, datetime):
            require_future(expires, now)
            return expires
        if expires is not None and expires != "never":
            raise InvalidInput("expires", "must be an instant or 'never'")
        if expires == "never":
            return None
        limits = []
        if days and not holder.owner:
            limits.append(now + timedelta(days=days))
        if request_key is not None and request_key.expires is not None:
            limits.append(request_key.expires)
        return min(limits, default=None)

    def _at_most_own_origin(self, origin: Origin | None) -> Origin | None:
        """Return the origin of a new key, at most at the level of the key of the request."""
        origins = [limit for limit in (origin, self._person.origin) if limit is not None]
        return least_trusted(*origins) if origins else None

    async def _require_changeable_key(self, key: str, action: str) -> Key:
        """Return a key that may be revoked or renewed: that of the request, or one with no more rights."""
        require_scope(self._person, "admin", action)
        stored = await self._parts.accounts.key(KeyId(key))
        if stored is None or not (self._person.owner or stored[0].user == self._person.id):
            raise NotFound("key", key)
        stored_key = stored[0]
        if stored_key.id != self._person.key:
            require_within(
                self._person,
                await read_request_key(self._context),
                stored_key,
                f"{action} that may do more than yours",
            )
        return stored_key

    async def _describe_key_change(self, action: str, key: Key, detail: str = "") -> AccountChange:
        """Return the change of a key: its holder and what it may do, without its secret and label."""
        holder = await self._parts.accounts.user(key.user)
        details = [detail] if detail else []
        details.append(f"scopes {' '.join(key.scopes)}")
        details.append(f"expires {key.expires.isoformat()}" if key.expires else "never expires")
        if key.origin:
            details.append(f"origin {key.origin}")
        holder_name = holder.name if holder else ""
        return self._context.change(action, key.id, holder_name, detail="; ".join(details))

    async def _new_key(self, template: Key, action: str, detail: str = "") -> NewKey:
        """Store a key with a new id and secret."""
        id, secret, hashed_secret = await self._core.keys.new_secret()
        key = replace(template, id=id)
        change = await self._describe_key_change(action, key, detail)
        await self._parts.accounts.add_key(key, hashed_secret, change)
        return NewKey(key, secret)
