"""Users, groups, keys and grants on the same database as everything else."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from conspectus.model.access import Grant, Group, Key, Principal, User
from conspectus.model.ids import CollectionId, GroupId, KeyId, SourceId, UserId
from conspectus.records.core.transactions import Transactions
from conspectus.records.people import grants, users


class SqlAccounts:
    """Every method of the port `Accounts` as one transaction; what each means is said there."""

    def __init__(self, transactions: Transactions) -> None:
        self._read = transactions.read
        self._write = transactions.write

    async def add_user(self, user: User) -> None:
        """Store it. Raises Conflict if the name is taken."""
        await self._write(partial(users.add_user, user=user))

    async def disable_user(self, user: UserId, *, disabled: bool) -> User:
        """Let a user do nothing any more, or let it again. Raises NotFound."""
        return await self._write(partial(users.disable_user, user=user, disabled=disabled))

    async def delete_user(self, user: UserId, *, heir: UserId | None = None) -> None:
        """Delete it; what it owns goes to the heir. Raises NotFound or Conflict."""
        await self._write(partial(users.delete_user, user=user, heir=heir), long=True)

    async def users(self) -> Sequence[User]:
        """All users by name."""
        return await self._read(users.all_users)

    async def user(self, name_or_id: str) -> User | None:
        """The user of that id, else of that name."""
        return await self._read(partial(users.find_user, name=name_or_id))

    async def add_group(self, group: Group) -> None:
        """Store it. Raises Conflict if the name is taken."""
        await self._write(partial(users.add_group, group=group))

    async def delete_group(self, group: GroupId) -> None:
        """Delete it with its grants and memberships. Raises NotFound."""
        await self._write(partial(users.delete_group, group=group))

    async def groups(self) -> Sequence[Group]:
        """All groups by name."""
        return await self._read(users.all_groups)

    async def members(self, group: GroupId) -> Sequence[User]:
        """The members of a group by name. Raises NotFound."""
        return await self._read(partial(users.members_of, group=group))

    async def join(self, group: GroupId, user: UserId) -> None:
        """Make the user a member, if it is none yet. Raises NotFound."""
        await self._write(partial(users.join, group=group, user=user))

    async def leave(self, group: GroupId, user: UserId) -> None:
        """End the membership, if there is one."""
        await self._write(partial(users.leave, group=group, user=user))

    async def add_key(self, key: Key, secret_hash: str) -> None:
        """Store a key with the hash of its secret. Raises NotFound for an unknown user."""
        await self._write(partial(users.add_key, key=key, secret_hash=secret_hash))

    async def key(self, key: KeyId) -> tuple[Key, str, User] | None:
        """A key with the hash of its secret and its user."""
        return await self._read(partial(users.find_key, key=key))

    async def keys(self, user: UserId | None = None) -> Sequence[Key]:
        """The keys of one user or of all, oldest first."""
        return await self._read(partial(users.keys_of, user=user))

    async def revoke_key(self, key: KeyId, at: datetime) -> Key:
        """End a key's validity for the very next request. Raises NotFound."""
        return await self._write(partial(users.revoke_key, key=key, at=at))

    async def used(self, key: KeyId, at: datetime, *, secret_hash: str | None = None) -> None:
        """Note that a key was used, and replace the hash of its secret if another one is given."""
        await self._write(partial(users.used, key=key, at=at, secret_hash=secret_hash))

    async def put_grant(self, grant: Grant) -> None:
        """Store it, in place of another role of the same grantee there. Raises NotFound."""
        await self._write(partial(grants.put_grant, grant=grant))

    async def revoke(self, collection: CollectionId, source: SourceId | None, grantee: Principal) -> bool:
        """Take a role away; whether there was one."""
        work = partial(grants.revoke, collection=collection, source=source, grantee=grantee)
        return await self._write(work)

    async def grants(self, collection: CollectionId) -> Sequence[Grant]:
        """All grants on a collection and its sources, in a stable order."""
        return await self._read(partial(grants.grants_on, collection=collection))

    async def held_by(self, user: UserId) -> Sequence[Grant]:
        """All grants that a user has, directly or through groups."""
        return await self._read(partial(grants.held_by, user=user))
