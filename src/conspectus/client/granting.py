"""Roles given and taken on a server."""

from collections.abc import Sequence

from conspectus.client.catalog import given, in_collection
from conspectus.client.request import Request, get, remove
from conspectus.client.upkeep import Upkeep
from conspectus.model.access import Grant, Principal, Role


class Granting(Upkeep):
    """Who may see and do what."""

    async def grant(
        self, collection: str, grantee: Principal, role: Role, *, source: str | None = None
    ) -> Grant:
        """Give a user or a group (by id or name) a role, in place of the one it had there.

        It holds for the collection, or for one source of it. Managers may give viewer and editor, owners
        all. Raises NotFound, NotAllowed, or Conflict for the account that the collection belongs to.
        """
        body = given(grantee=grantee, role=role, source=source)
        request = Request("PUT", in_collection(collection, "grants"), body, writes=True)
        return await self._channel.one(Grant, request)

    async def revoke(self, collection: str, grantee: Principal, *, source: str | None = None) -> bool:
        """Take a role away for the very next request, and say whether there was one."""
        path = in_collection(collection, "grants")
        request = remove(path, kind=grantee.kind, id=grantee.id, source=source)
        return await self._channel.member(bool, "revoked", request)

    async def grants(self, collection: str, *, source: str | None = None) -> Sequence[Grant]:
        """All grants on a collection and its sources, or those on one source. Managers may see them."""
        return await self._channel.several(Grant, get(in_collection(collection, "grants"), source=source))
