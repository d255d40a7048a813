"""The port of people, groups, keys and grants; every method is one transaction."""

from collections.abc import Container, Mapping, Sequence
from datetime import datetime
from typing import Protocol

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
    DirectoryMembership,
    GroupClaim,
    Identity,
    RefusedSignIn,
    SignedIn,
)
from conspectus.model.ids import CollectionId, GroupId, KeyId, SourceId, UserId
from conspectus.model.provisioning import ProvisionedGroup, ProvisionedUser
from conspectus.model.viewers import RemotePerson


class Accounts(Protocol):
    """Part of the system of record. Nothing here checks who asks; the engine does.

    A `change` is noted in the audit log in the transaction that makes it, if anything changes.
    """

    async def add_user(self, user: User, change: AccountChange | None = None) -> None:
        """Store it. Raises Conflict if the name is taken."""

    async def set_user_disabled(
        self,
        user: UserId,
        *,
        disabled: bool,
        change: AccountChange | None = None,
        revoke_keys: datetime | None = None,
    ) -> User:
        """Let a user do nothing any more, or let it again. Raises NotFound.

        Sessions and invitations of a disabled user are deleted, and keys revoked with `revoke_keys`, the
        time of that.
        """

    async def delete_user(
        self,
        user: UserId,
        *,
        transfer_to: UserId | None = None,
        change: AccountChange | None = None,
        purge: bool = False,
    ) -> None:
        """Delete it with its keys, grants, memberships, alerts, feedback and entries of the audit log.

        Its collections and jobs go to `transfer_to`. With `purge`, changes in the audit log lose its name.

        Raises NotFound, or Conflict if it owns collections and `transfer_to` is not given.
        """

    async def users(self) -> Sequence[User]:
        """All users by name."""

    async def user(self, name_or_id: str) -> User | None:
        """The user of that id, else of that name."""

    async def list_acquaintances(self, user: UserId) -> Acquaintances:
        """The users and groups that share a group, or a role on a collection or source, with a user.

        Each by name. How long it takes depends on these alone.
        """

    async def add_group(self, group: Group, change: AccountChange | None = None) -> None:
        """Store it. Raises Conflict if the name is taken."""

    async def delete_group(self, group: GroupId, change: AccountChange | None = None) -> None:
        """Delete it with its grants and memberships. Raises NotFound."""

    async def groups(self) -> Sequence[Group]:
        """All groups by name."""

    async def members(self, group: GroupId) -> Sequence[User]:
        """The members of a group by name. Raises NotFound."""

    async def join(self, group: GroupId, user: UserId, change: AccountChange | None = None) -> None:
        """Make the user a member, if it is none yet. Raises NotFound."""

    async def leave(self, group: GroupId, user: UserId, change: AccountChange | None = None) -> None:
        """End the membership, if there is one."""

    async def add_key(self, key: Key, secret_hash: str, change: AccountChange | None = None) -> None:
        """Store a key with the hash of its secret. Raises NotFound for an unknown user."""

    async def key(self, key: KeyId) -> tuple[Key, str, User] | None:
        """A key with the hash of its secret and its user."""

    async def keys(self, user: UserId | None = None) -> Sequence[Key]:
        """The keys of one user or of all, oldest first."""

    async def revoke_key(self, key: KeyId, at: datetime, change: AccountChange | None = None) -> Key:
        """End a key's validity for the very next request. Raises NotFound."""

    async def note_key_use(self, key: KeyId, at: datetime) -> None:
        """Note that a key was used."""

    async def put_grant(self, grant: Grant, change: AccountChange | None = None) -> None:
        """Store it, in place of another role of the same grantee there. Raises NotFound."""

    async def revoke(
        self,
        collection: CollectionId,
        source: SourceId | None,
        grantee: Principal,
        change: AccountChange | None = None,
    ) -> bool:
        """Take a role away; whether there was one."""

    async def grants(self, collection: CollectionId) -> Sequence[Grant]:
        """All grants on a collection and its sources, in a stable order."""

    async def grants_of(self, user: UserId) -> Sequence[Grant]:
        """All grants that a user has, directly or through groups."""

    async def list_hidden_sources(self, collection: CollectionId) -> Mapping[SourceId, datetime]:
        """The sources of a collection that only managers read, and from when on."""

    async def hide_sources(self, sources: Sequence[SourceId], *, since: datetime | None) -> None:
        """Hide these sources from all but managers, from an instant on; with None, show them again."""

    async def mirror_source(self, source: SourceId, remote: str, viewers: Sequence[str]) -> None:
        """Let only these viewers at the remote of a connection read a source. Raises NotFound."""

    async def viewers_version(self, collection: CollectionId) -> int:
        """A number that changes with whatever says who reads mirrored sources of a collection.

        That is viewers, members, mapped people, hidden sources, and sources themselves. 0: none is mirrored.
        """

    async def list_mirrored_sources(self, remote: str) -> Mapping[SourceId, frozenset[str]]:
        """The viewers of each source that the remote of a connection mirrors."""

    async def list_unreadable_sources(self, collection: CollectionId, user: UserId) -> Mapping[SourceId, str]:
        """The mirrored sources of a collection that a user is no viewer of, each with its connection."""

    async def put_remote_members(
        self, remote: str, members: Mapping[str, Sequence[str]], *, groups: Container[str] | None = None
    ) -> None:
        """Replace all members of groups at a remote; with `groups`, those not among them have none."""

    async def list_remote_people(self, remote: str) -> Sequence[RemotePerson]:
        """The viewers and members at a remote that are no groups, and the mapped people, by name."""

    async def list_remote_names(self, remote: str, user: UserId) -> Sequence[str]:
        """The names at a remote of the people that a user is mapped to, sorted."""

    async def map_remote_person(
        self, remote: str, person: RemotePerson, *, created: datetime, change: AccountChange | None = None
    ) -> None:
        """Store the user that a person at a remote is; None for none. Raises NotFound for an unknown user."""

    async def forget_remote(self, remote: str) -> None:
        """Delete the people and groups of a remote; what it mirrors is then read by nobody."""

    async def add_audit(self, entry: AuditEntry) -> None:
        """Store it until its collection, or one of its users, is deleted. Raises NotFound."""

    async def add_change(self, change: AccountChange) -> None:
        """Note a change that another store makes."""

    async def audit(self, *, after: str | None = None, limit: int) -> AuditPage:
        """A page of the audit log, newest first. Raises InvalidInput for a broken cursor."""

    async def add_session(
        self, session: Session, secret_hash: str, change: AccountChange | None = None
    ) -> None:
        """Store a session with the hash of its token. Raises NotFound for an unknown user.

        It is deleted with its user and its key, or once it has expired.
        """

    async def session(self, session: str) -> tuple[Session, str, User] | None:
        """A session with the hash of its token and its user."""

    async def sessions(self, user: UserId | None = None) -> Sequence[Session]:
        """The sessions of one user or of all, newest first."""

    async def find_issuer_sessions(
        self, issuer: str, *, identity: str | None, issuer_session: str | None
    ) -> Sequence[tuple[Session, User]]:
        """The sessions that began at an issuer, of an identity, or without one of a session there."""

    async def session_used(self, session: str, at: datetime) -> None:
        """Note that a session was used."""

    async def end_session(self, session: str, change: AccountChange | None = None) -> None:
        """Delete a session, if there is one."""

    async def add_invitation(
        self, invitation: Invitation, secret_hash: str, change: AccountChange | None = None
    ) -> None:
        """Store an invitation with the hash of its token. Raises NotFound for an unknown user.

        It is deleted with its user, or once it has expired.
        """

    async def invitation(self, invitation: str) -> tuple[Invitation, str] | None:
        """An invitation with the hash of its token."""

    async def invitations(self, user: UserId | None = None) -> Sequence[Invitation]:
        """The invitations of one user or of all, newest first."""

    async def withdraw_invitation(self, invitation: str, change: AccountChange | None = None) -> None:
        """Delete an invitation. Raises NotFound if there is none any more."""

    async def accept_invitation(
        self, invitation: str, session: Session, secret_hash: str, change: AccountChange | None = None
    ) -> None:
        """Replace an invitation by the session of who accepts it. Raises NotFound if it is gone."""

    async def add_identity(
        self, identity: Identity, change: AccountChange | None = None, *, new_user: User | None = None
    ) -> None:
        """Store an identity, with its user if that is new. It is deleted with its user.

        Raises NotFound for an unknown user, and Conflict if the identity or the name of the new user exists,
        or if the user has another identity of that issuer.
        """

    async def find_sign_in(self, identity: str) -> SignedIn | None:
        """An identity with its user and the memberships of that user."""

    async def identities(self, user: UserId | None = None) -> Sequence[Identity]:
        """The identities of one user or of all with who mapped them, oldest first."""

    async def note_refused_sign_in(self, refused: RefusedSignIn) -> None:
        """Store a subject that nobody is mapped to, or when it came last; at most 1,000, for 30 days.

        It is deleted when it is mapped.
        """

    async def list_refused_sign_ins(self) -> Sequence[RefusedSignIn]:
        """The subjects that were refused, newest first."""

    async def remove_identity(self, identity: Identity, change: AccountChange | None = None) -> None:
        """Delete an identity with its sessions, and end the memberships by claims of its issuer.

        Raises NotFound.
        """

    async def note_sign_in(
        self,
        identity: Identity,
        issued: datetime,
        *,
        first: AccountChange,
        joined: Mapping[GroupId, AccountChange],
        left: Mapping[GroupId, AccountChange],
    ) -> None:
        """Join and leave groups by the claims of a token, unless a newer token changed them since.

        Nothing ends a membership that people made. `first` is noted at the first sign-in.
        """

    async def add_group_claim(self, group_claim: GroupClaim, change: AccountChange | None = None) -> None:
        """Store a claim of a group, deleted with it. Raises NotFound, or Conflict if the group has it."""

    async def group_claims(self, issuer: str | None = None) -> Sequence[GroupClaim]:
        """The claims of groups of one issuer or of all, by claim."""

    async def remove_group_claim(self, group_claim: GroupClaim, change: AccountChange | None = None) -> None:
        """Delete it, and end the memberships of the group by claims of that issuer. Raises NotFound."""

    async def change_directory_members(
        self,
        issuer: str,
        *,
        joined: Mapping[DirectoryMembership, AccountChange],
        left: Mapping[DirectoryMembership, AccountChange],
    ) -> None:
        """Join and leave groups as a directory says, by groups and identities that are mapped still.

        Nothing ends a membership that people or others made. Each change of a membership is noted.
        """

    async def list_directory_members(self, issuer: str) -> Sequence[tuple[GroupId, UserId]]:
        """The memberships that a directory made."""

    async def add_provisioned_user(
        self,
        provisioned: ProvisionedUser,
        change: AccountChange | None = None,
        *,
        identity: Identity | None = None,
        is_new: bool = True,
    ) -> None:
        """Store that the provider manages a user, with the user if it is new, and with its identity.

        Raises NotFound, or Conflict for a name or identity of another user.
        """

    async def provisioned_users(self) -> Sequence[ProvisionedUser]:
        """The users whom the provider manages, oldest first."""

    async def put_provisioned_user(
        self, provisioned: ProvisionedUser, change: AccountChange | None = None
    ) -> None:
        """Change what the provider calls a user. Raises NotFound, or Conflict for the name of another one."""

    async def remove_provisioned_user(self, user: UserId, change: AccountChange | None = None) -> None:
        """Leave a user to people again, out of the groups that the provider manages. Raises NotFound."""

    async def add_provisioned_group(
        self, provisioned: ProvisionedGroup, change: AccountChange | None = None
    ) -> None:
        """Store a new group that the provider manages, without members. Raises Conflict."""

    async def provisioned_groups(self) -> Sequence[ProvisionedGroup]:
        """The groups that the provider manages, oldest first."""

    async def put_provisioned_group(
        self,
        provisioned: ProvisionedGroup,
        change: AccountChange | None = None,
        *,
        joined: Mapping[UserId, AccountChange],
        left: Mapping[UserId, AccountChange],
    ) -> None:
        """Change what the provider calls a group, and its memberships. Raises NotFound.

        Only users whom the provider manages join. Each change of a membership is noted.
        """
