"""Roles given and taken."""

from collections.abc import Sequence

from conspectus.access.policy import require_grantor, require_scope, role_on
from conspectus.access.reader import SourceRef
from conspectus.engine.maintenance import Upkeep
from conspectus.errors import Conflict, InvalidInput, NotFound
from conspectus.model.access import ROLES, Grant, Group, Principal, Role, User
from conspectus.model.ids import LOCAL, SourceId


class Granting(Upkeep):
    """Who may see and do what."""

    async def grant(
        self, collection: str, grantee: Principal, role: Role, *, source: str | None = None
    ) -> Grant:
        """Give a user or a group (by id or name) a role, in place of the one it had there.

        It holds for the collection, or for one source of it. Managers may give viewer and editor, owners
        all. Raises NotFound, NotAllowed, or Conflict for the account that the collection belongs to.
        """
        if role not in ROLES:
            raise InvalidInput("role", f"must be one of {', '.join(ROLES)}")
        place, part = await self._granted(collection, source)
        whom = await self._changeable(place, part, grantee, role)
        given = Grant(place.collection.id, part, whom, role, self._parts.clock())
        await self._parts.accounts.put_grant(given)
        return given

    async def revoke(self, collection: str, grantee: Principal, *, source: str | None = None) -> bool:
        """Revoke a role from the next request on, and say whether there was one."""
        place, part = await self._granted(collection, source)
        whom = await self._changeable(place, part, grantee, "viewer")
        return await self._parts.accounts.revoke(place.collection.id, part, whom)

    async def grants(self, collection: str, *, source: str | None = None) -> Sequence[Grant]:
        """All grants on a collection and its sources, or those on one source. Managers may see them."""
        place, part = await self._granted(collection, source)
        require_grantor(role_on(place.access, part), "viewer")
        found = await self._parts.accounts.grants(place.collection.id)
        return [each for each in found if part is None or each.source == part]

    async def _granted(self, collection: str, source: str | None) -> tuple[SourceRef, SourceId | None]:
        """The collection and, where one is named, the source that a role is for."""
        place = await self._sight.place(collection)
        require_scope(self._person, "admin", "see, give or take roles")
        if source is None:
            return place, None
        found = await self._sight.source(place, source)
        if found is None:
            raise NotFound("source", source)
        return place, found.id

    async def _changeable(
        self, place: SourceRef, part: SourceId | None, grantee: Principal, role: Role
    ) -> Principal:
        """The grantee by id, if the person may change what it has there to the role.

        Nobody learns whether a name exists who may not give it anything.
        """
        own = role_on(place.access, part)
        require_grantor(own, role)
        found = await (self._group if grantee.kind == "group" else self._user)(grantee.id)
        if found.id in {place.collection.owner, LOCAL}:
            raise Conflict("user", grantee.id, "has every right here and keeps it")
        whom = Principal(grantee.kind, found.id)
        for each in await self._parts.accounts.grants(place.collection.id):
            if (each.source, each.grantee) == (part, whom):
                require_grantor(own, each.role)
        return whom

    async def _user(self, name: str) -> User:
        found = await self._parts.accounts.user(name)
        if found is None:
            raise NotFound("user", name)
        return found

    async def _group(self, name: str) -> Group:
        found = await self._parts.accounts.groups()
        chosen = [each for each in found if each.id == name] or [each for each in found if each.name == name]
        if not chosen:
            raise NotFound("group", name)
        return chosen[0]
