"""The port of users, groups, API keys and grants. Every method is one transaction."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from conspectus.model.access import AuditEntry, AuditPage, Grant, Group, Key, Principal, User
from conspectus.model.ids import CollectionId, GroupId, KeyId, SourceId, UserId


class Accounts(Protocol):
    """Part of the system of record. Permissions are checked by the engine, not here."""

    async def add_user(self, user: User) -> None:
        """Store a user. Raises Conflict if the name is taken."""
        ...

    async def set_user_disabled(self, user: UserId, *, disabled: bool) -> User:
        """Disable or enable a user. Raises NotFound."""
        ...

    async def delete_user(self, user: UserId, *, transfer_to: UserId | None = None) -> None:
        """Delete a user with keys, grants, memberships and audit log entries.

        Collections and jobs go to `transfer_to`.

        Raises NotFound, or Conflict if it owns collections and `transfer_to` is not given.
        """
        ...

    async def users(self) -> Sequence[User]:
        """Return all users by name."""
        ...

    async def user(self, name_or_id: str) -> User | None:
        """Return the user of that id, else of that name."""
        ...

    async def add_group(self, group: Group) -> None:
        """Store a group. Raises Conflict if the name is taken."""
        ...

    async def delete_group(self, group: GroupId) -> None:
        """Delete a group with its grants and memberships. Raises NotFound."""
        ...

    async def groups(self) -> Sequence[Group]:
        """Return all groups by name."""
        ...

    async def members(self, group: GroupId) -> Sequence[User]:
        """Return the members of a group by name. Raises NotFound."""
        ...

    async def join(self, group: GroupId, user: UserId) -> None:
        """Add the user to the group, if it is no member yet. Raises NotFound."""
        ...

    async def leave(self, group: GroupId, user: UserId) -> None:
        """Remove the user from the group, if it is a member."""
        ...

    async def add_key(self, key: Key, secret_hash: str) -> None:
        """Store a key with the hash of its secret. Raises NotFound for an unknown user."""
        ...

    async def key(self, key: KeyId) -> tuple[Key, str, User] | None:
        """Return a key with the hash of its secret and its user."""
        ...

    async def keys(self, user: UserId | None = None) -> Sequence[Key]:
        """Return the keys of one user or of all, oldest first."""
        ...

    async def revoke_key(self, key: KeyId, at: datetime) -> Key:
        """Revoke a key from the next request on. Raises NotFound."""
        ...

    async def used(self, key: KeyId, at: datetime) -> None:
        """Record that a key was used."""
        ...

    async def put_grant(self, grant: Grant) -> None:
        """Store a grant, replacing another role of the principal there. Raises NotFound."""
        ...

    async def revoke(self, collection: CollectionId, source: SourceId | None, grantee: Principal) -> bool:
        """Delete a grant. Returns whether it existed."""
        ...

    async def grants(self, collection: CollectionId) -> Sequence[Grant]:
        """Return all grants on a collection and its sources, in a stable order."""
        ...

    async def grants_of(self, user: UserId) -> Sequence[Grant]:
        """Return all grants of a user, direct or through groups."""
        ...

    async def add_audit(self, entry: AuditEntry) -> None:
        """Store an audit log entry, until its collection or one of its users is deleted. Raises NotFound."""
        ...

    async def audit(self, *, after: str | None = None, limit: int) -> AuditPage:
        """Return a page of the audit log, newest first. Raises InvalidInput for an invalid cursor."""
        ...
