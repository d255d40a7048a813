"""People and grants in dictionaries: what every other store of them has to agree with."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeAlias

from conspectus.errors import Conflict, InvalidInput, NotFound
from conspectus.model.access import (
    AccountChange,
    Acquaintances,
    AuditEntry,
    AuditPage,
    Grant,
    Group,
    Key,
    Principal,
    Session,
    User,
)
from conspectus.model.ids import CollectionId, GroupId, KeyId, SourceId, UserId
from conspectus.model.records import Collection, Receipt, Source

Change: TypeAlias = AccountChange | None


class MemoryCatalog:
    """As much of the records as people and grants refer to."""

    def __init__(self) -> None:
        self.collections: dict[CollectionId, Collection] = {}
        self.sources: dict[SourceId, Source] = {}

    async def create_collection(self, collection: Collection) -> Collection:
        """Store it."""
        self.collections[collection.id] = collection
        return collection

    async def put_source(self, source: Source) -> Source:
        """Store it."""
        self.sources[source.id] = source
        return source

    async def collection(self, name: str) -> Collection | None:
        """The collection of that name or id."""
        found = [each for each in self.collections.values() if name in {each.name, each.id}]
        return found[0] if found else None

    async def delete_collection(self, collection: CollectionId) -> Receipt:
        """Delete it."""
        del self.collections[collection]
        return Receipt()

    async def delete_source(self, source: SourceId) -> Receipt:
        """Delete it."""
        del self.sources[source]
        return Receipt()


def _meet(
    first: set[tuple[CollectionId, SourceId | None]], second: set[tuple[CollectionId, SourceId | None]]
) -> bool:
    """Whether one source is in both sets, each of which may have a whole collection in its place."""
    return any(
        collection == other and (source == part or None in {source, part})
        for collection, source in first
        for other, part in second
    )


class MemoryAccounts:
    """Every method of the port `Accounts`; what each means is said there."""

    def __init__(self, catalog: MemoryCatalog) -> None:
        self._catalog = catalog
        self._users: dict[UserId, User] = {}
        self._groups: dict[GroupId, Group] = {}
        self._members: set[tuple[GroupId, UserId]] = set()
        self._keys: dict[KeyId, tuple[Key, str]] = {}
        self._grants: list[Grant] = []
        self._audit: list[AuditEntry] = []
        self._sessions: dict[str, tuple[Session, str]] = {}
        self._hidden: dict[SourceId, datetime] = {}

    async def add_user(self, user: User, change: Change = None) -> None:
        """Store it. Raises Conflict if the name is taken."""
        if any(each.name == user.name for each in self._users.values()):
            raise Conflict("user", user.name, "exists already")
        self._users[user.id] = user
        self._note(change)

    async def set_user_disabled(self, user: UserId, *, disabled: bool, change: Change = None) -> User:
        """Let a user do nothing any more, or let it again. Raises NotFound."""
        self._users[user] = replace(self._user(user), disabled=disabled)
        self._note(change)
        return self._users[user]

    async def delete_user(
        self, user: UserId, *, transfer_to: UserId | None = None, change: Change = None, purge: bool = False
    ) -> None:
        """Delete it; what it owns goes to `transfer_to`. Raises NotFound or Conflict."""
        leaving = self._user(user)
        owned = [each for each in self._catalog.collections.values() if each.owner == user]
        follower = None if transfer_to is None else self._user(transfer_to)
        if owned and follower is None:
            raise Conflict("user", leaving.name, "owns collections; give `transfer_to`")
        if follower is not None:
            moved = [_handed(each, leaving, follower) for each in owned]
            self._require_free(moved, follower)
            self._catalog.collections.update((each.id, each) for each in moved)
        del self._users[user]
        self._note(change)
        about = {user, *(name for name, (key, _) in self._keys.items() if key.user == user)} if purge else ()
        self._audit = [
            replace(
                entry,
                actor_name="" if purge and entry.actor == user else entry.actor_name,
                subject_name="" if entry.subject in about else entry.subject_name,
            )
            for entry in self._audit
        ]
        self._members = {pair for pair in self._members if pair[1] != user}
        self._keys = {name: pair for name, pair in self._keys.items() if pair[0].user != user}
        self._grants = [each for each in self._grants if each.grantee != Principal("user", user)]
        self._audit = [
            entry for entry in self._audit if entry.subject or user not in {entry.actor, entry.viewed_as}
        ]

    async def users(self) -> Sequence[User]:
        """All users by name."""
        return sorted(self._users.values(), key=lambda user: user.name)

    async def user(self, name_or_id: str) -> User | None:
        """The user of that id, else of that name."""
        named = [each for each in self._users.values() if each.name == name_or_id]
        return self._users.get(UserId(name_or_id)) or (named[0] if named else None)

    async def acquaintances(self, user: UserId) -> Acquaintances:
        """The users and groups that share a group, or a role on a collection or source, with a user."""
        users = [other for other in self._users.values() if other.owner or self._shares(user, other.id)]
        own_groups = {group for group, member in self._members if member == user}
        own_places = self._places({user}, own_groups)
        groups = [
            group
            for group in self._groups.values()
            if group.id in own_groups or _meet(own_places, self._places(set(), {group.id}))
        ]
        return Acquaintances(
            tuple(sorted(users, key=lambda account: account.name)),
            tuple(sorted(groups, key=lambda account: account.name)),
        )

    def _shares(self, user: UserId, other: UserId) -> bool:
        """Whether two users are the same, or share a group or a role somewhere."""
        first, second = (
            {group for group, member in self._members if member == person} for person in (user, other)
        )
        places = self._places({user}, first), self._places({other}, second)
        return user == other or bool(first & second) or _meet(*places)

    def _places(
        self, users: set[UserId], of_groups: set[GroupId]
    ) -> set[tuple[CollectionId, SourceId | None]]:
        """The collections (with None) and sources on which any of them has a role."""
        owned = {(each.id, None) for each in self._catalog.collections.values() if each.owner in users}
        principals = {Principal("user", user) for user in users}
        principals |= {Principal("group", group) for group in of_groups}
        return owned | {
            (grant.collection, grant.source) for grant in self._standing() if grant.grantee in principals
        }

    async def add_group(self, group: Group, change: Change = None) -> None:
        """Store it. Raises Conflict if the name is taken."""
        if any(each.name == group.name for each in self._groups.values()):
            raise Conflict("group", group.name, "exists already")
        self._groups[group.id] = group
        self._note(change)

    async def delete_group(self, group: GroupId, change: Change = None) -> None:
        """Delete it with its grants and memberships. Raises NotFound."""
        self._require_group(group)
        del self._groups[group]
        self._note(change)
        self._members = {pair for pair in self._members if pair[0] != group}
        self._grants = [each for each in self._grants if each.grantee != Principal("group", group)]

    async def groups(self) -> Sequence[Group]:
        """All groups by name."""
        return sorted(self._groups.values(), key=lambda group: group.name)

    async def members(self, group: GroupId) -> Sequence[User]:
        """The members of a group by name. Raises NotFound."""
        self._require_group(group)
        inside = [self._users[user] for home, user in self._members if home == group]
        return sorted(inside, key=lambda user: user.name)

    async def join(self, group: GroupId, user: UserId, change: Change = None) -> None:
        """Make the user a member, if it is none yet. Raises NotFound."""
        self._require_group(group)
        self._members.add((group, self._user(user).id))
        self._note(change)

    async def leave(self, group: GroupId, user: UserId, change: Change = None) -> None:
        """End the membership, if there is one."""
        if (group, user) in self._members:
            self._members.remove((group, user))
            self._note(change)

    async def add_key(self, key: Key, secret_hash: str, change: Change = None) -> None:
        """Store a key with the hash of its secret. Raises NotFound for an unknown user."""
        self._user(key.user)
        self._keys[key.id] = key, secret_hash
        self._note(change)

    async def key(self, key: KeyId) -> tuple[Key, str, User] | None:
        """A key with the hash of its secret and its user."""
        if key not in self._keys:
            return None
        found, stored = self._keys[key]
        return found, stored, self._user(found.user)

    async def keys(self, user: UserId | None = None) -> Sequence[Key]:
        """The keys of one user or of all, oldest first."""
        chosen = [key for key, _ in self._keys.values() if user in {None, key.user}]
        return sorted(chosen, key=lambda key: (key.created, key.id))

    async def revoke_key(self, key: KeyId, at: datetime, change: Change = None) -> Key:
        """End a key's validity for the very next request; the first time stays. Raises NotFound."""
        if key not in self._keys:
            raise NotFound("key", key)
        found, stored = self._keys[key]
        self._note(None if found.revoked else change)
        self._keys[key] = replace(found, revoked=found.revoked or at), stored
        return self._keys[key][0]

    async def used(self, key: KeyId, at: datetime) -> None:
        """Note that a key was used."""
        if key in self._keys:
            found, stored = self._keys[key]
            self._keys[key] = replace(found, last_used=at), stored

    async def put_grant(self, grant: Grant, change: Change = None) -> None:
        """Store it, in place of another role of the same grantee there. Raises NotFound."""
        if grant.collection not in self._catalog.collections:
            raise NotFound("collection", grant.collection)
        source = None if grant.source is None else self._catalog.sources.get(grant.source)
        if grant.source is not None and (source is None or source.collection != grant.collection):
            raise NotFound("source", grant.source)
        known = self._users if grant.grantee.kind == "user" else self._groups
        if grant.grantee.id not in known:
            raise NotFound(grant.grantee.kind, grant.grantee.id)
        await self.revoke(grant.collection, grant.source, grant.grantee)
        self._grants.append(grant)
        self._note(change)

    async def revoke(
        self, collection: CollectionId, source: SourceId | None, grantee: Principal, change: Change = None
    ) -> bool:
        """Take a role away; whether there was one."""
        kept = [
            each
            for each in self._grants
            if (each.collection, each.source, each.grantee) != (collection, source, grantee)
        ]
        found = len(kept) < len(self._grants)
        self._grants = kept
        self._note(change if found else None)
        return found

    async def grants(self, collection: CollectionId) -> Sequence[Grant]:
        """All grants on a collection and its sources, in a stable order."""
        return [each for each in self._standing() if each.collection == collection]

    async def grants_of(self, user: UserId) -> Sequence[Grant]:
        """All grants that a user has, directly or through groups."""
        own = {Principal("group", group) for group, member in self._members if member == user}
        return [each for each in self._standing() if each.grantee in own | {Principal("user", user)}]

    async def hidden_sources(self, collection: CollectionId) -> Mapping[SourceId, datetime]:
        """The sources of a collection that only managers read, and from when on."""
        stored = {source.id for source in self._catalog.sources.values() if source.collection == collection}
        return {source: since for source, since in self._hidden.items() if source in stored}

    async def hide_sources(self, sources: Sequence[SourceId], *, since: datetime | None) -> None:
        """Hide these sources from all but managers, from an instant on; with None, show them again."""
        for source in self._catalog.sources.keys() & set(sources):
            self._hidden.pop(source, None)
            if since is not None:
                self._hidden[source] = since

    async def add_audit(self, entry: AuditEntry) -> None:
        """Store it. Raises NotFound."""
        if entry.collection is None or entry.collection not in self._catalog.collections:
            raise NotFound("collection", entry.collection or "")
        self._audit.append(entry)

    async def add_change(self, change: AccountChange) -> None:
        """Note a change that another store makes."""
        self._note(change)

    async def audit(self, *, after: str | None = None, limit: int) -> AuditPage:
        """A page of the audit log, newest first. Raises InvalidInput for a broken cursor."""
        stored = self._catalog.collections
        there = [entry for entry in self._audit if entry.subject or entry.collection in stored]
        newest = sorted(there, key=lambda each: (each.created, each.id), reverse=True)
        ids = [each.id for each in newest]
        if after not in {None, *ids}:
            raise InvalidInput("after", "is not a cursor of a page")
        start = 0 if after is None else ids.index(after) + 1
        page = tuple(newest[start : start + limit])
        return AuditPage(page, page[-1].id if start + limit < len(newest) else None)

    async def add_session(self, session: Session, secret_hash: str) -> None:
        """Store a session with the hash of its token, and delete those that have expired."""
        now = session.created
        self._sessions = {name: pair for name, pair in self._sessions.items() if pair[0].expires > now}
        self._sessions[session.id] = session, secret_hash

    async def session(self, session: str) -> tuple[Session, str] | None:
        """A session with the hash of its token, while its key is stored."""
        stored = self._sessions.get(session)
        return None if stored is None or stored[0].key not in self._keys else stored

    async def session_used(self, session: str, at: datetime) -> None:
        """Note that a session was used."""
        if session in self._sessions:
            stored, secret_hash = self._sessions[session]
            self._sessions[session] = replace(stored, last_used=at), secret_hash

    async def end_session(self, session: str) -> None:
        """Delete a session, if there is one."""
        self._sessions.pop(session, None)

    def _note(self, change: Change) -> None:
        if change is not None:
            who = (
                change.id,
                change.actor,
                change.actor,
                change.collection,
                "",
                change.created,
                change.action,
            )
            about = (change.key, change.actor_name, change.subject, change.subject_name, change.detail)
            self._audit.append(AuditEntry(*who, *about))

    def _standing(self) -> list[Grant]:
        """The grants on what is still there."""
        catalog = self._catalog
        return [
            each
            for each in self._grants
            if each.collection in catalog.collections
            and (each.source is None or each.source in catalog.sources)
        ]

    def _user(self, user: UserId) -> User:
        if user not in self._users:
            raise NotFound("user", user)
        return self._users[user]

    def _require_group(self, group: GroupId) -> None:
        if group not in self._groups:
            raise NotFound("group", group)

    def _require_free(self, moved: Sequence[Collection], follower: User) -> None:
        staying = self._catalog.collections.keys() - {each.id for each in moved}
        taken = {self._catalog.collections[each].name for each in staying}
        others = {each.name for each in self._users.values()} - {follower.name}
        for each in moved:
            first, slash, _ = each.name.partition("/")
            if each.name in taken or (slash and first in others):
                raise Conflict("collection", each.name, "is taken; rename one of the two")


def _handed(collection: Collection, leaving: User, follower: User) -> Collection:
    bare = collection.name.removeprefix(f"{leaving.name}/")
    name = bare if follower.owner else f"{follower.name}/{bare}"
    return replace(collection, owner=follower.id, name=name)
