"""Access: grants, the roles that they give, and the audit log."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated

from conspectus.access.collection_access import CollectionAccess
from conspectus.access.policy import (
    highest,
    includes_role,
    origins_of,
    require_grantor,
    require_own_origin,
    require_owner,
    require_scope,
    role_on,
)
from conspectus.engine.service import Service
from conspectus.errors import Conflict, InvalidInput, PermissionDenied
from conspectus.model.access import (
    ROLES,
    AccountChange,
    AuditPage,
    DocumentReader,
    EffectiveRole,
    Grant,
    Group,
    Principal,
    Role,
    RoleOrigin,
    User,
)
from conspectus.model.annotations import Example
from conspectus.model.ids import LOCAL, GroupId, SourceId, UserId
from conspectus.model.parameters import CollectionName, Cursor, DocumentIdentifier, PageLimit, UserName
from conspectus.model.records import Collection

AUDIT_ENTRIES_PER_PAGE = 100
"""Maximum number of entries of a page of the audit log."""
SEE_ROLES = "see the roles of others"


class AccessService(Service):
    """Grants, the roles that they give, and the audit log."""

    async def grant(
        self,
        collection: CollectionName,
        grantee: Annotated[Principal, "User or group that receives the role."],
        role: Annotated[Role, "Role that is granted.", Example("viewer")],
        *,
        source: Annotated[
            str | None, "Name or id of a source; none: the whole collection.", Example("handbook")
        ] = None,
    ) -> Grant:
        """Grant a role to a user or a group, by id or name; it replaces the role that they had there.

        It holds for the collection, or for one source of it. Managers may grant viewer and editor, owners any
        role. Raises NotFound, PermissionDenied, or Conflict for the account that owns the collection.
        """
        if role not in ROLES:
            raise InvalidInput("role", f"must be one of {', '.join(ROLES)}")
        access, source_id = await self._grant_target(collection, source)
        account = await self._require_grantable(access, source_id, grantee, role)
        principal = Principal(grantee.kind, account.id)
        change = self._describe_grant_change("put_grant", access, source_id, account, grantee.kind, role)
        # Of the same instant: so the change of the audit log tells who granted it.
        grant = Grant(access.collection.id, source_id, principal, role, change.created)
        await self._parts.accounts.put_grant(grant, change)
        return replace(grant, granted_by=change.actor, granted_by_name=change.actor_name)

    async def revoke(
        self,
        collection: CollectionName,
        grantee: Annotated[Principal, "User or group that has the role."],
        *,
        source: Annotated[
            str | None, "Name or id of a source; none: the whole collection.", Example("handbook")
        ] = None,
    ) -> bool:
        """Revoke a role from the next request on, and say whether there was one."""
        access, source_id = await self._grant_target(collection, source)
        account = await self._require_grantable(access, source_id, grantee, "viewer")
        principal = Principal(grantee.kind, account.id)
        change = self._describe_grant_change("revoke_grant", access, source_id, account, grantee.kind)
        return await self._parts.accounts.revoke(access.collection.id, source_id, principal, change)

    async def list_grants(
        self,
        collection: CollectionName,
        *,
        source: Annotated[
            str | None, "Name or id of a source; none: the whole collection.", Example("handbook")
        ] = None,
    ) -> Sequence[Grant]:
        """List the grants on a collection and its sources, or on one source. Only managers may."""
        access, source_id = await self._grant_target(collection, source)
        require_grantor(role_on(access.roles, source_id), "viewer")
        grants = await self._parts.accounts.grants(access.collection.id)
        return [grant for grant in grants if source_id is None or grant.source == source_id]

    async def effective_roles(
        self,
        user: UserName,
        *,
        collection: Annotated[CollectionName, "Name or id of a collection; none: all."] | None = None,
    ) -> Sequence[EffectiveRole]:
        """List the roles of a user on collections and each of their sources, and where each comes from.

        On the collections that you manage, or on one of them; your own on all that you may read. Raises
        NotFound or PermissionDenied.
        """
        accesses = await self._list_role_accesses(user, collection)
        account = await self._directory.user(user)
        roles: list[EffectiveRole] = []
        for access in accesses:
            origins_by_source = (await self._read_origins(access.collection, [account]))[account.id]
            unreadable = await self._authorized.list_unreadable_sources(access.collection, account.id)
            for source in (None, *await self._authorized.sources(access)):
                origins = list(origins_by_source[None])
                if source is not None:
                    origins += origins_by_source.get(source.id, [])
                if source is not None and source.id in unreadable:
                    origins = []
                role = EffectiveRole(
                    collection=access.collection.id,
                    collection_name=access.collection.name,
                    source=None if source is None else source.id,
                    source_name=None if source is None else source.name,
                    role=highest(origin.role for origin in origins) if origins else None,
                    origins=tuple(origins),
                )
                roles.append(role)
        return roles

    async def _list_role_accesses(self, user: str, collection: str | None) -> Sequence[CollectionAccess]:
        """Return the collections on which the person may see the roles of a user."""
        if user in {self._person.id, self._person.name}:
            if collection is None:
                return await self._authorized.collections()
            return [await self._authorized.collection(collection)]
        require_scope(self._person, "admin", SEE_ROLES)
        if collection is not None:
            return [await self._require_managed(collection)]
        accesses = [
            access
            for access in await self._authorized.collections()
            if includes_role(access.roles.collection, "manager")
        ]
        if not accesses and not self._person.owner:
            raise PermissionDenied(SEE_ROLES, "the role manager")
        return accesses

    async def list_readers(self, document: DocumentIdentifier) -> Sequence[DocumentReader]:
        """List the users who can read a document, by name, with their role and where it comes from.

        Only managers of the whole collection may. Raises NotFound or PermissionDenied.
        """
        stored, access = await self._authorized.document(document)
        await self._require_managed(access.collection.id)
        users = [user for user in await self._parts.accounts.users() if not user.disabled]
        readers: list[DocumentReader] = []
        is_hidden = stored.source in await self._authorized.list_hidden_sources(access.collection.id)
        lowest: Role = "manager" if is_hidden else "viewer"
        origins_by_user = await self._read_origins(access.collection, users)
        for user in users:
            if stored.source in await self._authorized.list_unreadable_sources(access.collection, user.id):
                continue
            origins_by_source = origins_by_user[user.id]
            origins = origins_by_source[None] + origins_by_source.get(stored.source, [])
            role = highest(origin.role for origin in origins) if origins else None
            if role is not None and includes_role(role, lowest):
                readers.append(DocumentReader(user.id, user.name, role, tuple(origins)))
        return readers

    async def list_audit(
        self, *, after: Cursor | None = None, limit: PageLimit = AUDIT_ENTRIES_PER_PAGE
    ) -> AuditPage:
        """List changes of accounts and settings, queries asked as another user and reviews, newest first.

        Accounts are users, groups, keys and grants. Only the owner account may.
        """
        require_owner(self._person, "see the audit log")
        return await self._parts.accounts.audit(after=after, limit=limit)

    async def _grant_target(
        self, collection: str, source: str | None
    ) -> tuple[CollectionAccess, SourceId | None]:
        """Return the collection and, if given, the source that a role is granted on."""
        access = await self._authorized.collection(collection)
        require_scope(self._person, "admin", "list, grant or revoke roles")
        if source is None:
            return access, None
        return access, (await self._authorized.require_source(access, source)).id

    async def _require_managed(self, collection: str) -> CollectionAccess:
        """Return a collection that the user manages as a whole."""
        access = await self._authorized.collection(collection)
        require_scope(self._person, "admin", SEE_ROLES)
        access.require("manager", SEE_ROLES)
        return access

    async def _require_grantable(
        self, access: CollectionAccess, source: SourceId | None, grantee: Principal, role: Role
    ) -> User | Group:
        """Return the account of a principal, if the user may grant or revoke this role of it.

        The error does not reveal whether a name exists to users who may not grant roles.
        """
        require_own_origin(self._person, "grant or revoke roles")
        own_role = role_on(access.roles, source)
        require_grantor(own_role, role)
        account: User | Group
        if grantee.kind == "group":
            account = await self._directory.group(grantee.id)
        else:
            account = await self._directory.user(grantee.id)
        if account.id in {access.collection.owner, LOCAL}:
            raise Conflict("user", grantee.id, "owns the collection; its rights cannot be changed")
        principal = Principal(grantee.kind, account.id)
        for grant in await self._parts.accounts.grants(access.collection.id):
            if (grant.source, grant.grantee) == (source, principal):
                require_grantor(own_role, grant.role)
        return account

    def _describe_grant_change(
        self,
        action: str,
        access: CollectionAccess,
        source: SourceId | None,
        account: User | Group,
        *details: str,
    ) -> AccountChange:
        """Return the change of a grant of an account."""
        detail = " ".join(details if source is None else (*details, f"source {source}"))
        return self._context.change(
            action, account.id, account.name, collection=access.collection.id, detail=detail
        )

    async def _read_origins(
        self, collection: Collection, users: Sequence[User]
    ) -> Mapping[UserId, Mapping[SourceId | None, list[RoleOrigin]]]:
        """Return the origins of the roles that users have: on the whole collection (None), and on sources."""
        accounts = self._parts.accounts
        group_names = {str(group.id): group.name for group in await accounts.groups()}
        grants = await accounts.grants(collection.id)
        groups = {GroupId(grant.grantee.id) for grant in grants if grant.grantee.kind == "group"}
        members = {str(group): {user.id for user in await accounts.members(group)} for group in groups}
        origins = {}
        for user in users:
            user_grants = [
                grant for grant in grants if user.id in members.get(grant.grantee.id, {grant.grantee.id})
            ]
            origins[user.id] = origins_of(user, collection, user_grants, group_names)
        return origins
