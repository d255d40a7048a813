"""People and grants in dictionaries: what every other store of them has to agree with."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeAlias

from conspectus.errors import Conflict, InvalidInput, NotFound
from conspectus.model.access import (
    AccountChange,
    Acquaintances,
    AuditEntry,
    AuditPage,
    Grant,
    Group,
    Invitation,
    Key,
    Principal,
    Session,
    User,
)
from conspectus.model.identities import (
    DIRECTORY_ISSUER,
    DirectoryMembership,
    GroupClaim,
    Identity,
    RefusedSignIn,
    SignedIn,
)
from conspectus.model.ids import CollectionId, GroupId, KeyId, SourceId, UserId
from conspectus.model.provisioning import ProvisionedGroup, ProvisionedUser
from conspectus.model.records import Collection, Receipt, Source
from conspectus.model.viewers import EVERYONE, RemotePerson
from conspectus.ports.accounts import Accounts

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
        matches = [
            collection for collection in self.collections.values() if name in {collection.name, collection.id}
        ]
        return matches[0] if matches else None

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


class MemoryAccounts(Accounts):
    """The port over dictionaries; it says what each method does."""

    def __init__(self, catalog: MemoryCatalog) -> None:
        self._catalog = catalog
        self._users: dict[UserId, User] = {}
        self._groups: dict[GroupId, Group] = {}
        self._members: dict[tuple[GroupId, UserId], str | None] = {}
        self._identities: dict[str, Identity] = {}
        self._group_claims: dict[str, GroupClaim] = {}
        self._refused_sign_ins: dict[str, RefusedSignIn] = {}
        self._keys: dict[KeyId, tuple[Key, str]] = {}
        self._grants: list[Grant] = []
        self._audit: list[AuditEntry] = []
        self._sessions: dict[str, tuple[Session, str]] = {}
        self._invitations: dict[str, tuple[Invitation, str]] = {}
        self._hidden: dict[SourceId, datetime] = {}
        self._viewers: dict[SourceId, tuple[str, frozenset[str]]] = {}
        self._remote_members: dict[tuple[str, str], tuple[str, ...]] = {}
        self._remote_people: dict[tuple[str, str], UserId] = {}
        self._provisioned_users: dict[UserId, ProvisionedUser] = {}
        self._provisioned_groups: dict[GroupId, ProvisionedGroup] = {}

    async def add_user(self, user: User, change: Change = None) -> None:
        if any(account.name == user.name for account in self._users.values()):
            raise Conflict("user", user.name, "exists already")
        self._users[user.id] = user
        self._note(change)

    async def set_user_disabled(
        self,
        user: UserId,
        *,
        disabled: bool,
        change: Change = None,
        revoke_keys: datetime | None = None,
    ) -> User:
        self._users[user] = replace(self._user(user), disabled=disabled)
        self._note(change)
        if disabled:
            self._sessions = {id: pair for id, pair in self._sessions.items() if pair[0].user != user}
            self._invitations = {id: pair for id, pair in self._invitations.items() if pair[0].user != user}
        if revoke_keys is not None:
            for key in await self.keys(user):
                await self.revoke_key(key.id, revoke_keys)
        return self._users[user]

    async def delete_user(
        self, user: UserId, *, transfer_to: UserId | None = None, change: Change = None, purge: bool = False
    ) -> None:
        leaving = self._user(user)
        owned = [collection for collection in self._catalog.collections.values() if collection.owner == user]
        follower = None if transfer_to is None else self._user(transfer_to)
        if owned and follower is None:
            raise Conflict("user", leaving.name, "owns collections; give `transfer_to`")
        if follower is not None:
            moved = [_handed(collection, leaving, follower) for collection in owned]
            self._require_free(moved, follower)
            self._catalog.collections.update((collection.id, collection) for collection in moved)
        del self._users[user]
        self._provisioned_users.pop(user, None)
        self._remote_people = {key: other for key, other in self._remote_people.items() if other != user}
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
        self._members = {pair: issuer for pair, issuer in self._members.items() if pair[1] != user}
        self._identities = {
            id: identity for id, identity in self._identities.items() if identity.user != user
        }
        self._keys = {name: pair for name, pair in self._keys.items() if pair[0].user != user}
        self._grants = [grant for grant in self._grants if grant.grantee != Principal("user", user)]
        self._audit = [
            entry for entry in self._audit if entry.subject or user not in {entry.actor, entry.viewed_as}
        ]

    async def users(self) -> Sequence[User]:
        return sorted(self._users.values(), key=lambda user: user.name)

    async def user(self, name_or_id: str) -> User | None:
        named = [account for account in self._users.values() if account.name == name_or_id]
        return self._users.get(UserId(name_or_id)) or (named[0] if named else None)

    async def list_acquaintances(self, user: UserId) -> Acquaintances:
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
        owned = {
            (collection.id, None)
            for collection in self._catalog.collections.values()
            if collection.owner in users
        }
        principals = {Principal("user", user) for user in users}
        principals |= {Principal("group", group) for group in of_groups}
        return owned | {
            (grant.collection, grant.source) for grant in self._standing() if grant.grantee in principals
        }

    async def add_group(self, group: Group, change: Change = None) -> None:
        if any(stored.name == group.name for stored in self._groups.values()):
            raise Conflict("group", group.name, "exists already")
        self._groups[group.id] = group
        self._note(change)

    async def delete_group(self, group: GroupId, change: Change = None) -> None:
        self._require_group(group)
        del self._groups[group]
        self._provisioned_groups.pop(group, None)
        self._note(change)
        self._members = {pair: issuer for pair, issuer in self._members.items() if pair[0] != group}
        self._group_claims = {id: claim for id, claim in self._group_claims.items() if claim.group != group}
        self._grants = [grant for grant in self._grants if grant.grantee != Principal("group", group)]

    async def groups(self) -> Sequence[Group]:
        return sorted(self._groups.values(), key=lambda group: group.name)

    async def members(self, group: GroupId) -> Sequence[User]:
        self._require_group(group)
        inside = [self._users[user] for home, user in self._members if home == group]
        return sorted(inside, key=lambda user: user.name)

    async def join(self, group: GroupId, user: UserId, change: Change = None) -> None:
        self._require_group(group)
        self._members[group, self._user(user).id] = None
        self._note(change)

    async def leave(self, group: GroupId, user: UserId, change: Change = None) -> None:
        if (group, user) in self._members:
            del self._members[group, user]
            self._note(change)

    async def add_key(self, key: Key, secret_hash: str, change: Change = None) -> None:
        self._user(key.user)
        self._keys[key.id] = key, secret_hash
        self._note(change)

    async def key(self, key: KeyId) -> tuple[Key, str, User] | None:
        if key not in self._keys:
            return None
        stored_key, stored = self._keys[key]
        return stored_key, stored, self._user(stored_key.user)

    async def keys(self, user: UserId | None = None) -> Sequence[Key]:
        listed = [key for key, _ in self._keys.values() if user in {None, key.user}]
        return sorted(listed, key=lambda key: (key.created, key.id))

    async def revoke_key(self, key: KeyId, at: datetime, change: Change = None) -> Key:
        if key not in self._keys:
            raise NotFound("key", key)
        stored_key, stored = self._keys[key]
        self._note(None if stored_key.revoked else change)
        self._keys[key] = replace(stored_key, revoked=stored_key.revoked or at), stored
        return self._keys[key][0]

    async def note_key_use(self, key: KeyId, at: datetime) -> None:
        if key in self._keys:
            stored_key, stored = self._keys[key]
            self._keys[key] = replace(stored_key, last_used=at), stored

    async def put_grant(self, grant: Grant, change: Change = None) -> None:
        if grant.collection not in self._catalog.collections:
            raise NotFound("collection", grant.collection)
        source = None if grant.source is None else self._catalog.sources.get(grant.source)
        if grant.source is not None and (source is None or source.collection != grant.collection):
            raise NotFound("source", grant.source)
        grantees = self._users if grant.grantee.kind == "user" else self._groups
        if grant.grantee.id not in grantees:
            raise NotFound(grant.grantee.kind, grant.grantee.id)
        await self.revoke(grant.collection, grant.source, grant.grantee)
        self._grants.append(grant)
        self._note(change)

    async def revoke(
        self, collection: CollectionId, source: SourceId | None, grantee: Principal, change: Change = None
    ) -> bool:
        others = [
            grant
            for grant in self._grants
            if (grant.collection, grant.source, grant.grantee) != (collection, source, grantee)
        ]
        is_revoked = len(others) < len(self._grants)
        self._grants = others
        self._note(change if is_revoked else None)
        return is_revoked

    async def grants(self, collection: CollectionId) -> Sequence[Grant]:
        return [self._with_grantor(grant) for grant in self._standing() if grant.collection == collection]

    def _with_grantor(self, grant: Grant) -> Grant:
        detail = f"{grant.grantee.kind} {grant.role}" + (f" source {grant.source}" if grant.source else "")
        stated = ("put_grant", grant.created, grant.collection, grant.grantee.id, detail)
        for entry in self._audit:
            if (entry.action, entry.created, entry.collection, entry.subject, entry.detail) == stated:
                return replace(grant, granted_by=entry.actor, granted_by_name=entry.actor_name or None)
        return grant

    async def grants_of(self, user: UserId) -> Sequence[Grant]:
        own_groups = {Principal("group", group) for group, member in self._members if member == user}
        return [
            grant for grant in self._standing() if grant.grantee in own_groups | {Principal("user", user)}
        ]

    async def list_hidden_sources(self, collection: CollectionId) -> Mapping[SourceId, datetime]:
        stored = {source.id for source in self._catalog.sources.values() if source.collection == collection}
        return {source: since for source, since in self._hidden.items() if source in stored}

    async def hide_sources(self, sources: Sequence[SourceId], *, since: datetime | None) -> None:
        for source in self._catalog.sources.keys() & set(sources):
            self._hidden.pop(source, None)
            if since is not None:
                self._hidden[source] = since

    async def mirror_source(self, source: SourceId, remote: str, viewers: Sequence[str]) -> None:
        if source not in self._catalog.sources:
            raise NotFound("source", source)
        self._viewers[source] = (remote, frozenset(viewers))
        collection = self._catalog.collections[self._catalog.sources[source].collection]
        self._catalog.collections[collection.id] = replace(collection, mirrors=True)

    async def viewers_version(self, collection: CollectionId) -> int:
        stored = self._catalog.sources
        mirrored = {source for source in self._viewers if self._exists(source)}
        if not any(stored[source].collection == collection for source in mirrored):
            return 0
        state = (
            sorted(stored),
            sorted((source, remote, *sorted(names)) for source, (remote, names) in self._viewers.items()),
            sorted(self._remote_members.items()),
            sorted(self._remote_people.items()),
            sorted(self._hidden.items()),
        )
        return hash(repr(state)) & (1 << 62) - 1 or 1

    async def list_mirrored_sources(self, remote: str) -> Mapping[SourceId, frozenset[str]]:
        stored = self._viewers.items()
        return {source: viewers for source, (by, viewers) in stored if by == remote and self._exists(source)}

    async def list_unreadable_sources(self, collection: CollectionId, user: UserId) -> Mapping[SourceId, str]:
        stored = self._catalog.sources
        return {
            source: remote
            for source, (remote, viewers) in self._viewers.items()
            if self._exists(source)
            and stored[source].collection == collection
            and not viewers & self._names_of(remote, user)
        }

    def _names_of(self, remote: str, user: UserId) -> set[str]:
        names = {name for (by, name), mapped in self._remote_people.items() if (by, mapped) == (remote, user)}
        names |= {EVERYONE} if names else set()
        while True:
            groups = {
                group
                for (by, group), members in self._remote_members.items()
                if by == remote and names & set(members)
            }
            if groups <= names:
                return names
            names |= groups

    def _exists(self, source: SourceId) -> bool:
        return source in self._catalog.sources

    async def put_remote_members(
        self, remote: str, members: Mapping[str, Sequence[str]], *, groups: Container[str] | None = None
    ) -> None:
        for by, group in list(self._remote_members):
            if by == remote and (group in members or (groups is not None and group not in groups)):
                del self._remote_members[by, group]
        self._remote_members |= {(remote, group): tuple(names) for group, names in members.items() if names}

    async def list_remote_names(self, remote: str, user: UserId) -> Sequence[str]:
        mapped = self._remote_people.items()
        return sorted(name for (by, name), other in mapped if (by, other) == (remote, user))

    async def list_remote_people(self, remote: str) -> Sequence[RemotePerson]:
        mapped = {name: user for (by, name), user in self._remote_people.items() if by == remote}
        of_remote = {group: names for (by, group), names in self._remote_members.items() if by == remote}
        names = {name for members in of_remote.values() for name in members}
        for viewers in (await self.list_mirrored_sources(remote)).values():
            names |= viewers
        people = (names - of_remote.keys() - {EVERYONE}) | mapped.keys()
        return [RemotePerson(name, mapped.get(name)) for name in sorted(people)]

    async def map_remote_person(
        self, remote: str, person: RemotePerson, *, created: datetime, change: AccountChange | None = None
    ) -> None:
        if person.user is not None and person.user not in self._users:
            raise NotFound("user", person.user)
        self._remote_people.pop((remote, person.name), None)
        if person.user is not None:
            self._remote_people[remote, person.name] = person.user
        self._note(change)

    async def forget_remote(self, remote: str) -> None:
        self._remote_members = {key: row for key, row in self._remote_members.items() if key[0] != remote}
        self._remote_people = {key: user for key, user in self._remote_people.items() if key[0] != remote}

    async def add_audit(self, entry: AuditEntry) -> None:
        if entry.collection is None or entry.collection not in self._catalog.collections:
            raise NotFound("collection", entry.collection or "")
        self._audit.append(entry)

    async def add_change(self, change: AccountChange) -> None:
        self._note(change)

    async def audit(self, *, after: str | None = None, limit: int) -> AuditPage:
        stored = self._catalog.collections
        there = [entry for entry in self._audit if entry.subject or entry.collection in stored]
        newest = sorted(there, key=lambda entry: (entry.created, entry.id), reverse=True)
        ids = [entry.id for entry in newest]
        if after not in {None, *ids}:
            raise InvalidInput("after", "is not a cursor; pass the `next` of the page before")
        start = 0 if after is None else ids.index(after) + 1
        page = tuple(newest[start : start + limit])
        return AuditPage(page, page[-1].id if start + limit < len(newest) else None)

    async def add_session(self, session: Session, secret_hash: str, change: Change = None) -> None:
        self._user(session.user)
        now = session.created
        self._sessions = {name: pair for name, pair in self._sessions.items() if pair[0].expires > now}
        self._sessions[session.id] = session, secret_hash
        self._note(change)

    async def session(self, session: str) -> tuple[Session, str, User] | None:
        stored = self._sessions.get(session)
        if stored is None or not self._has_owners(stored[0]):
            return None
        return *stored, self._users[stored[0].user]

    async def sessions(self, user: UserId | None = None) -> Sequence[Session]:
        open_sessions = [session for session, _ in self._sessions.values() if self._has_owners(session)]
        of_user = [session for session in open_sessions if user in {None, session.user}]
        return sorted(of_user, key=lambda session: (-session.created.timestamp(), session.id))

    def _has_owners(self, session: Session) -> bool:
        """Whether the user of a session exists, and its key."""
        return session.user in self._users and (session.key is None or session.key in self._keys)

    async def find_issuer_sessions(
        self, issuer: str, *, identity: str | None, issuer_session: str | None
    ) -> Sequence[tuple[Session, User]]:
        named = []
        for session in await self.sessions():
            stored = self._identities.get(session.identity or "")
            if stored is None or stored.issuer != issuer:
                continue
            is_named = session.issuer_session == issuer_session if identity is None else stored.id == identity
            if is_named:
                named.append((session, self._users[session.user]))
        return named

    async def session_used(self, session: str, at: datetime) -> None:
        if session in self._sessions:
            stored, secret_hash = self._sessions[session]
            self._sessions[session] = replace(stored, last_used=at), secret_hash

    async def end_session(self, session: str, change: Change = None) -> None:
        if self._sessions.pop(session, None):
            self._note(change)

    async def add_invitation(self, invitation: Invitation, secret_hash: str, change: Change = None) -> None:
        self._user(invitation.user)
        now = invitation.created
        self._invitations = {name: pair for name, pair in self._invitations.items() if pair[0].expires > now}
        self._invitations[invitation.id] = invitation, secret_hash
        self._note(change)

    async def invitation(self, invitation: str) -> tuple[Invitation, str] | None:
        stored = self._invitations.get(invitation)
        return None if stored is None or stored[0].user not in self._users else stored

    async def invitations(self, user: UserId | None = None) -> Sequence[Invitation]:
        of_users = [pair[0] for pair in self._invitations.values() if pair[0].user in self._users]
        of_user = [invitation for invitation in of_users if user in {None, invitation.user}]
        return sorted(of_user, key=lambda invitation: (-invitation.created.timestamp(), invitation.id))

    async def withdraw_invitation(self, invitation: str, change: Change = None) -> None:
        if await self.invitation(invitation) is None:
            raise NotFound("invitation", invitation)
        del self._invitations[invitation]
        self._note(change)

    async def accept_invitation(
        self, invitation: str, session: Session, secret_hash: str, change: Change = None
    ) -> None:
        await self.withdraw_invitation(invitation)
        await self.add_session(session, secret_hash, change)

    async def add_identity(
        self, identity: Identity, change: Change = None, *, new_user: User | None = None
    ) -> None:
        if identity.id in self._identities:
            raise Conflict("identity", identity.subject, "is that of a user already")
        if new_user is not None:
            await self.add_user(new_user)
        self._user(identity.user)
        issuers = {other.issuer for other in self._identities.values() if other.user == identity.user}
        if identity.issuer in issuers:
            raise Conflict("user", identity.user, "has an identity of that issuer")
        self._identities[identity.id] = identity
        self._refused_sign_ins.pop(identity.id, None)
        self._note(change)

    async def find_sign_in(self, identity: str) -> SignedIn | None:
        stored = self._identities.get(identity)
        if stored is None:
            return None
        memberships = {
            group: issuer for (group, user), issuer in self._members.items() if user == stored.user
        }
        return SignedIn(stored, self._user(stored.user), memberships)

    async def identities(self, user: UserId | None = None) -> Sequence[Identity]:
        of_user = [identity for identity in self._identities.values() if user in {None, identity.user}]
        of_user = [self._with_mapper(identity) for identity in of_user]
        return sorted(of_user, key=lambda identity: (identity.created, identity.id))

    def _with_mapper(self, identity: Identity) -> Identity:
        for entry in self._audit:
            is_mapping = entry.action in {"map_identity", "create_user"} and entry.subject == identity.user
            if is_mapping and entry.created == identity.created:
                return replace(identity, mapped_by=entry.actor, mapped_by_name=entry.actor_name or None)
        return identity

    async def note_refused_sign_in(self, refused: RefusedSignIn) -> None:
        earlier = self._refused_sign_ins.pop(refused.id, refused)
        self._refused_sign_ins[refused.id] = replace(earlier, last=refused.last)
        oldest = refused.last - timedelta(days=30)
        kept = [stored for stored in await self.list_refused_sign_ins() if stored.last >= oldest]
        self._refused_sign_ins = {stored.id: stored for stored in kept[:1_000]}

    async def list_refused_sign_ins(self) -> Sequence[RefusedSignIn]:
        return sorted(
            self._refused_sign_ins.values(), key=lambda stored: (-stored.last.timestamp(), stored.id)
        )

    async def remove_identity(self, identity: Identity, change: Change = None) -> None:
        if self._identities.pop(identity.id, None) is None:
            raise NotFound("identity", identity.id)
        self._sessions = {
            id: stored for id, stored in self._sessions.items() if stored[0].identity != identity.id
        }
        self._end_memberships(user=identity.user, issuer=identity.issuer)
        if not any(other.user == identity.user for other in self._identities.values()):
            self._end_memberships(user=identity.user, issuer=DIRECTORY_ISSUER)
        self._note(change)

    async def note_sign_in(
        self,
        identity: Identity,
        issued: datetime,
        *,
        first: AccountChange,
        joined: Mapping[GroupId, AccountChange],
        left: Mapping[GroupId, AccountChange],
    ) -> None:
        stored = self._identities.get(identity.id)
        if stored is None or (stored.last_issued is not None and stored.last_issued > issued):
            return
        if stored.last_issued is None:
            self._note(first)
        self._identities[identity.id] = replace(stored, last_issued=issued)
        for group, change in left.items():
            if self._members.get((group, stored.user)) == stored.issuer:
                del self._members[group, stored.user]
                self._note(change)
        for group, change in joined.items():
            if group in self._groups and (group, stored.user) not in self._members:
                self._members[group, stored.user] = stored.issuer
                self._note(change)

    async def list_directory_members(self, issuer: str) -> Sequence[tuple[GroupId, UserId]]:
        return [pair for pair, source in self._members.items() if source == issuer]

    async def change_directory_members(
        self,
        issuer: str,
        *,
        joined: Mapping[DirectoryMembership, AccountChange],
        left: Mapping[DirectoryMembership, AccountChange],
    ) -> None:
        for membership, change in left.items():
            pair = membership.group, membership.user
            if pair in self._members and self._members[pair] == issuer:
                del self._members[pair]
                self._note(change)
        mapped_groups = {claim.group for claim in self._group_claims.values() if claim.issuer == issuer}
        for membership, change in joined.items():
            identity = self._identities.get(membership.identity)
            is_mapped = identity is not None and identity.user == membership.user
            pair = membership.group, membership.user
            if is_mapped and membership.group in mapped_groups and pair not in self._members:
                self._members[pair] = issuer
                self._note(change)

    async def add_group_claim(self, group_claim: GroupClaim, change: Change = None) -> None:
        if group_claim.group not in self._groups:
            raise NotFound("group", group_claim.group)
        if group_claim.id in self._group_claims:
            raise Conflict("claim", group_claim.claim, "is that of the group already")
        self._group_claims[group_claim.id] = group_claim
        self._note(change)

    async def group_claims(self, issuer: str | None = None) -> Sequence[GroupClaim]:
        listed = [claim for claim in self._group_claims.values() if issuer in {None, claim.issuer}]
        return sorted(listed, key=lambda group_claim: (group_claim.claim, group_claim.id))

    async def remove_group_claim(self, group_claim: GroupClaim, change: Change = None) -> None:
        if self._group_claims.pop(group_claim.id, None) is None:
            raise NotFound("claim", group_claim.id)
        self._end_memberships(group=group_claim.group, issuer=group_claim.issuer)
        self._note(change)

    async def add_provisioned_user(
        self,
        provisioned: ProvisionedUser,
        change: Change = None,
        *,
        identity: Identity | None = None,
        is_new: bool = True,
    ) -> None:
        self._require_free_user_name(provisioned)
        if provisioned.user.id in self._provisioned_users:
            raise Conflict("user", provisioned.user_name, "is managed by the provider already")
        if identity is not None and identity.id in self._identities:
            raise Conflict("identity", identity.subject, "is that of a user already")
        if is_new:
            await self.add_user(provisioned.user)
        self._user(provisioned.user.id)
        if identity is not None:
            await self.add_identity(identity)
        self._provisioned_users[provisioned.user.id] = provisioned
        self._note(change)

    async def provisioned_users(self) -> Sequence[ProvisionedUser]:
        current = [
            replace(
                provisioned,
                user=self._users[user],
                groups=tuple(
                    sorted(group for group in self._provisioned_groups if (group, user) in self._members)
                ),
            )
            for user, provisioned in self._provisioned_users.items()
        ]
        return sorted(current, key=lambda provisioned: (provisioned.user.created, provisioned.user.id))

    async def put_provisioned_user(self, provisioned: ProvisionedUser, change: Change = None) -> None:
        self._require_free_user_name(provisioned)
        if provisioned.user.id not in self._provisioned_users:
            raise NotFound("user", provisioned.user.id)
        self._provisioned_users[provisioned.user.id] = provisioned
        self._note(change)

    async def remove_provisioned_user(self, user: UserId, change: Change = None) -> None:
        if self._provisioned_users.pop(user, None) is None:
            raise NotFound("user", user)
        self._members = {
            (group, member): origin
            for (group, member), origin in self._members.items()
            if member != user or group not in self._provisioned_groups
        }
        self._note(change)

    async def add_provisioned_group(self, provisioned: ProvisionedGroup, change: Change = None) -> None:
        await self.add_group(provisioned.group)
        self._provisioned_groups[provisioned.group.id] = provisioned
        self._note(change)

    async def provisioned_groups(self) -> Sequence[ProvisionedGroup]:
        current = [
            replace(
                provisioned,
                members=tuple(
                    sorted(user for user in self._provisioned_users if (group, user) in self._members)
                ),
            )
            for group, provisioned in self._provisioned_groups.items()
        ]
        return sorted(current, key=lambda provisioned: (provisioned.group.created, provisioned.group.id))

    async def put_provisioned_group(
        self,
        provisioned: ProvisionedGroup,
        change: Change = None,
        *,
        joined: Mapping[UserId, AccountChange],
        left: Mapping[UserId, AccountChange],
    ) -> None:
        group = provisioned.group.id
        if group not in self._provisioned_groups:
            raise NotFound("group", group)
        self._provisioned_groups[group] = provisioned
        self._note(change)
        for user, removal in left.items():
            await self.leave(group, user, removal)
        for user, addition in joined.items():
            if user in self._provisioned_users and (group, user) not in self._members:
                self._members[group, user] = "scim"
                self._note(addition)

    def _require_free_user_name(self, provisioned: ProvisionedUser) -> None:
        name = provisioned.user_name.casefold()
        for user, other in self._provisioned_users.items():
            if user != provisioned.user.id and other.user_name.casefold() == name:
                raise Conflict("user", provisioned.user_name, "is the name of another user of the provider")

    def _end_memberships(
        self, *, issuer: str, group: GroupId | None = None, user: UserId | None = None
    ) -> None:
        self._members = {
            (home, member): origin
            for (home, member), origin in self._members.items()
            if origin != issuer or group not in {None, home} or user not in {None, member}
        }

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
            grant
            for grant in self._grants
            if grant.collection in catalog.collections
            and (grant.source is None or grant.source in catalog.sources)
        ]

    def _user(self, user: UserId) -> User:
        if user not in self._users:
            raise NotFound("user", user)
        return self._users[user]

    def _require_group(self, group: GroupId) -> None:
        if group not in self._groups:
            raise NotFound("group", group)

    def _require_free(self, moved: Sequence[Collection], follower: User) -> None:
        staying = self._catalog.collections.keys() - {collection.id for collection in moved}
        names = {self._catalog.collections[collection].name for collection in staying}
        others = {account.name for account in self._users.values()} - {follower.name}
        for collection in moved:
            first, slash, _ = collection.name.partition("/")
            if collection.name in names or (slash and first in others):
                raise Conflict("collection", collection.name, "is taken; rename one of the two")


def _handed(collection: Collection, leaving: User, follower: User) -> Collection:
    bare = collection.name.removeprefix(f"{leaving.name}/")
    name = bare if follower.owner else f"{follower.name}/{bare}"
    return replace(collection, owner=follower.id, name=name)
