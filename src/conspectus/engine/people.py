"""People: accounts, groups and keys."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Annotated
from uuid import uuid4

from conspectus.access.account_names import account_name, label_text
from conspectus.access.policy import (
    highest,
    includes_role,
    origins_of,
    require_grantor,
    require_own_origin,
    require_owner,
    require_owner_in_person,
    require_scope,
    require_scopes,
    require_within,
    role_on,
)
from conspectus.access.reader import CollectionAccess
from conspectus.engine.context import Service
from conspectus.errors import Conflict, InvalidInput, NotFound, PermissionDenied
from conspectus.model.access import (
    ROLES,
    SCOPES,
    AccountChange,
    AuditPage,
    DocumentReader,
    EffectiveRole,
    Expiry,
    Grant,
    Group,
    Key,
    NewKey,
    Person,
    Principal,
    Role,
    RoleOrigin,
    Scope,
    Session,
    User,
)
from conspectus.model.annotations import Example, Length
from conspectus.model.ids import LOCAL, GroupId, KeyId, SourceId, UserId
from conspectus.model.parameters import (
    CollectionName,
    Cursor,
    DocumentIdentifier,
    GroupName,
    KeyIdentifier,
    PageLimit,
    Purge,
    SessionIdentifier,
    UserName,
)
from conspectus.model.query import EVERYWHERE
from conspectus.model.records import Collection
from conspectus.model.trust import Origin, least_trusted

OWNER_NAME = "owner"
MAX_KEY_DAYS = 36_500
AUDIT_ENTRIES_PER_PAGE = 100
"""Maximum number of entries of a page of the audit log."""
SEE_ROLES = "see the roles of others"


class PeopleService(Service):
    """Users, groups, API keys and grants."""

    async def whoami(self) -> Person:
        """Return the current user and the scopes of the key."""
        return self._person

    async def create_user(
        self, name: Annotated[str, Length(1, 100), "Name of the user.", Example("ann")]
    ) -> User:
        """Create a user. Only the owner account may do this. Raises InvalidInput or Conflict."""
        require_owner_in_person(self._person, "make accounts")
        self._context.screen_value("users.name", account_name(name))
        if await self._authorized.has_prefix(f"{name}/"):
            raise Conflict("user", name, "is the prefix of names of collections; rename those first")
        await self._ensure_owner_account()
        user = User(UserId(str(uuid4())), name, self._parts.clock())
        await self._parts.accounts.add_user(user, self._context.change("create_user", user.id, name))
        return user

    async def list_users(self) -> Sequence[User]:
        """List all users by name. Only the owner account may do this."""
        require_owner(self._person, "see accounts")
        return await self._parts.accounts.users()

    async def get_user(self, user: UserName) -> User:
        """Return the user of that id or name. Only the owner account may do this. Raises NotFound."""
        require_owner(self._person, "see accounts")
        return await self._directory.user(user)

    async def set_user_disabled(
        self,
        user: UserName,
        *,
        disabled: Annotated[bool, "Whether the user has no access.", Example(True)] = True,
    ) -> User:
        """Disable a user from the next request on, or enable it. Raises NotFound."""
        require_owner_in_person(self._person, "disable accounts")
        account = await self._require_other_than_owner(user)
        detail = "disabled" if disabled else "enabled"
        change = self._context.change("set_user_disabled", account.id, account.name, detail=detail)
        return await self._parts.accounts.set_user_disabled(account.id, disabled=disabled, change=change)

    async def delete_user(
        self,
        user: UserName,
        *,
        transfer_to: Annotated[
            str | None, "Name or id of the user who receives the collections.", Example("ben")
        ] = None,
        purge: Purge = False,
    ) -> None:
        """Delete an account with its keys and grants; its collections and jobs go to `transfer_to`.

        With `purge`, it returns when no file holds its name, except as the user of memories, which
        `memory.forget` deletes.

        Only the owner account may do this. Raises NotFound, or Conflict if it owns collections and there is
        no `transfer_to`, or that account has some of the same names.
        """
        require_owner_in_person(self._person, "delete accounts")
        account = await self._require_other_than_owner(user)
        heir = None if transfer_to is None else await self._directory.user(transfer_to)
        if heir == account:
            raise InvalidInput("transfer_to", "is the account to delete; choose another one")
        heir_id = None if heir is None else heir.id
        detail = "" if heir_id is None else f"transferred to {heir_id}"
        name = "" if purge else account.name
        change = self._context.change("delete_user", account.id, name, detail=detail)
        async with self._context.open_deletion(purge):
            await self._parts.accounts.delete_user(
                account.id, transfer_to=heir_id, change=change, purge=purge
            )

    async def create_group(
        self, name: Annotated[str, Length(1, 100), "Name of the group.", Example("operators")]
    ) -> Group:
        """Create a group. Only the owner account may do this. Raises InvalidInput or Conflict."""
        require_owner_in_person(self._person, "make groups")
        self._context.screen_value("groups.name", account_name(name))
        group = Group(GroupId(str(uuid4())), name, self._parts.clock())
        await self._parts.accounts.add_group(group, self._context.change("create_group", group.id, name))
        return group

    async def list_groups(self) -> Sequence[Group]:
        """List all groups by name. Only the owner account may do this."""
        require_owner(self._person, "see groups")
        return await self._parts.accounts.groups()

    async def delete_group(self, group: GroupName) -> None:
        """Delete a group with its grants. Only the owner account may do this. Raises NotFound."""
        require_owner_in_person(self._person, "delete groups")
        deleted = await self._directory.group(group)
        change = self._context.change("delete_group", deleted.id, deleted.name)
        await self._parts.accounts.delete_group(deleted.id, change)

    async def list_members(self, group: GroupName) -> Sequence[User]:
        """List the members of a group by name. Only the owner account may do this. Raises NotFound."""
        require_owner(self._person, "see groups")
        return await self._parts.accounts.members((await self._directory.group(group)).id)

    async def add_member(self, group: GroupName, user: UserName) -> None:
        """Add a user to a group. Only the owner account may do this. Raises NotFound."""
        require_owner_in_person(self._person, "change groups")
        joined, member = await self._directory.group(group), await self._directory.user(user)
        change = self._context.change("add_member", member.id, member.name, detail=f"group {joined.name}")
        await self._parts.accounts.join(joined.id, member.id, change)

    async def remove_member(self, group: GroupName, user: UserName) -> None:
        """Remove a user from a group. Only the owner account may do this. Raises NotFound."""
        require_owner_in_person(self._person, "change groups")
        left, member = await self._directory.group(group), await self._directory.user(user)
        change = self._context.change("remove_member", member.id, member.name, detail=f"group {left.name}")
        await self._parts.accounts.leave(left.id, member.id, change)

    async def create_key(
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
            await self._ensure_owner_account()
        holder = await self._directory.user(await self._key_holder(user, "make a key"))
        request_key = await self._request_key()
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

    async def list_keys(
        self,
        user: Annotated[str | None, "Name or id of the user; none: you, `*`: all.", Example("ann")] = None,
    ) -> Sequence[Key]:
        """List your API keys, oldest first; the owner account may list those of any user, or all with `*`."""
        if user == EVERYWHERE:
            require_owner(self._person, "see the keys of others")
            return await self._parts.accounts.keys()
        return await self._parts.accounts.keys(await self._key_holder(user, "see keys"))

    async def revoke_key(self, key: KeyIdentifier) -> Key:
        """Revoke an API key; the next request with it is refused.

        Raises NotFound, or PermissionDenied if it may do more than yours.
        """
        stored_key = await self._require_changeable_key(key, "revoke a key")
        change = await self._describe_key_change("revoke_key", stored_key)
        return await self._parts.accounts.revoke_key(stored_key.id, self._parts.clock(), change)

    async def rotate_key(self, key: KeyIdentifier) -> NewKey:
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

    async def list_sessions(
        self,
        user: Annotated[str | None, "Name or id of the user; none: you, `*`: all.", Example("ann")] = None,
    ) -> Sequence[Session]:
        """List your open sessions of browsers, newest first; the owner account may list those of any user."""
        if user == EVERYWHERE:
            require_owner(self._person, "see the sessions of others")
            sessions = await self._parts.accounts.sessions()
        else:
            sessions = await self._parts.accounts.sessions(await self._holder(user, "see sessions"))
        now = self._parts.clock()
        return [session for session in sessions if self._core.sessions.is_open(session, now)]

    async def end_session(self, session: SessionIdentifier) -> None:
        """End a session of a browser; its next request is refused.

        Raises NotFound, or PermissionDenied if its key has scopes that yours has not.
        """
        require_own_origin(self._person, "end a session")
        stored = await self._parts.accounts.session(session)
        if stored is None or not (self._person.owner or stored[0].user == self._person.id):
            raise NotFound("session", session)
        key = await self._parts.accounts.key(stored[0].key)
        if key is not None:
            require_scopes(self._person, key[0].scopes, "end a session of that key")
        holder = await self._directory.user(stored[0].user)
        change = self._context.change("end_session", session, holder.name)
        await self._parts.accounts.end_session(session, change)

    async def authenticate(self, secret: str) -> Person:
        """Return the person of an API key, for servers. Raises Unauthenticated."""
        return await self._core.keys.person(secret)

    async def create_owner(self) -> NewKey | None:
        """Create the owner account with a first API key, if there is no key yet."""
        require_owner(self._person, "make the owner account")
        if await self._parts.accounts.keys():
            return None
        await self._ensure_owner_account()
        first = Key(KeyId(""), LOCAL, "first key", SCOPES, self._parts.clock())
        return await self._new_key(first, "create_key")

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
        grant = Grant(access.collection.id, source_id, principal, role, self._parts.clock())
        change = self._describe_grant_change("put_grant", access, source_id, account, grantee.kind, role)
        await self._parts.accounts.put_grant(grant, change)
        return grant

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

        On the collections that you manage, or on one of them. Raises NotFound or PermissionDenied.
        """
        require_scope(self._person, "admin", SEE_ROLES)
        if collection is None:
            accesses = [
                access
                for access in await self._authorized.collections()
                if includes_role(access.roles.collection, "manager")
            ]
        else:
            accesses = [await self._require_managed(collection)]
        if not accesses and not self._person.owner:
            raise PermissionDenied(SEE_ROLES, "the role manager")
        account = await self._directory.user(user)
        roles: list[EffectiveRole] = []
        for access in accesses:
            origins_by_source = (await self._read_origins(access.collection, [account]))[account.id]
            for source in (None, *await self._authorized.sources(access)):
                origins = list(origins_by_source[None])
                if source is not None:
                    origins += origins_by_source.get(source.id, [])
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

    async def _require_managed(self, collection: str) -> CollectionAccess:
        """Return a collection that the user manages as a whole."""
        access = await self._authorized.collection(collection)
        require_scope(self._person, "admin", SEE_ROLES)
        access.require("manager", SEE_ROLES)
        return access

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

    async def _ensure_owner_account(self) -> None:
        """Ensure that the store's owner has an account."""
        if await self._parts.accounts.user(LOCAL) is None:
            owner = User(LOCAL, OWNER_NAME, self._parts.clock(), owner=True)
            with suppress(Conflict):
                change = self._context.change("create_user", owner.id, owner.name)
                await self._parts.accounts.add_user(owner, change)

    async def _require_other_than_owner(self, user: str) -> User:
        """Return an account that is not the owner account. Raises NotFound or Conflict."""
        account = await self._directory.user(user)
        if account.owner:
            raise Conflict("user", user, "is the owner account, which cannot be changed")
        return account

    async def _key_holder(self, user: str | None, action: str) -> UserId:
        """Return the user whose keys are meant: oneself; the owner account may name any user."""
        require_scope(self._person, "admin", action)
        return await self._holder(user, action)

    async def _holder(self, user: str | None, action: str) -> UserId:
        """Return a user whose keys or sessions are meant: oneself; the owner account may name any user."""
        if user is None or user in {self._person.id, self._person.name}:
            return self._person.id
        require_owner(self._person, f"{action} of another user")
        return (await self._directory.user(user)).id

    async def _scopes(self, scopes: Sequence[Scope] | None, holder: User) -> tuple[Scope, ...]:
        """Return the scopes of a new key in order; if none are given, those that its user needs."""
        if scopes is None:
            needed = await self._authorized.choose_scopes(holder)
            scopes = [scope for scope in needed if scope in self._person.scopes]
        ordered = tuple(scope for scope in SCOPES if scope in scopes)
        if not ordered or set(scopes) - set(SCOPES):
            raise InvalidInput("scopes", f"must be some of {', '.join(SCOPES)}")
        return ordered

    def _expiry(self, expires: Expiry | None, holder: User, request_key: Key | None) -> datetime | None:
        """Return when a new key expires; without a time, at the latest with the key of the request."""
        now, days = self._parts.clock(), min(self._parts.settings.key_days, MAX_KEY_DAYS)
        if isinstance(expires, datetime):
            if expires.tzinfo is None or expires <= now:
                raise InvalidInput("expires", "must be an instant in the future, with a time zone")
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

    async def _request_key(self) -> Key | None:
        """Return the key of the request; None without one."""
        if self._person.key is None:
            return None
        stored = await self._parts.accounts.key(self._person.key)
        return None if stored is None else stored[0]

    async def _require_changeable_key(self, key: str, action: str) -> Key:
        """Return a key that may be revoked or renewed: that of the request, or one with no more rights."""
        require_scope(self._person, "admin", action)
        stored = await self._parts.accounts.key(KeyId(key))
        if stored is None or not (self._person.owner or stored[0].user == self._person.id):
            raise NotFound("key", key)
        stored_key = stored[0]
        if stored_key.id != self._person.key:
            require_within(
                self._person, await self._request_key(), stored_key, f"{action} that may do more than yours"
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

    async def _new_key(self, template: Key, action: str, detail: str = "") -> NewKey:
        """Store a key with a new id and secret."""
        id, secret, hashed_secret = await self._core.keys.new_secret()
        key = replace(template, id=id)
        change = await self._describe_key_change(action, key, detail)
        await self._parts.accounts.add_key(key, hashed_secret, change)
        return NewKey(key, secret)

    async def _grant_target(
        self, collection: str, source: str | None
    ) -> tuple[CollectionAccess, SourceId | None]:
        """Return the collection and, if given, the source that a role is granted on."""
        access = await self._authorized.collection(collection)
        require_scope(self._person, "admin", "list, grant or revoke roles")
        if source is None:
            return access, None
        return access, (await self._authorized.require_source(access, source)).id

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
