"""People: users and groups."""

from collections.abc import Sequence
from typing import Annotated
from uuid import uuid4

from conspectus.access.account_names import account_name
from conspectus.access.policy import require_owner, require_owner_in_person
from conspectus.engine.job_cancellation import cancel_jobs_of
from conspectus.engine.owner_account import ensure_owner_account
from conspectus.engine.service import Service
from conspectus.errors import Conflict, InvalidInput
from conspectus.model.access import Group, Person, User
from conspectus.model.annotations import Example, Length
from conspectus.model.ids import GroupId, UserId
from conspectus.model.parameters import GroupName, Purge, UserName


class PeopleService(Service):
    """Users and groups."""

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
        await ensure_owner_account(self._context)
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
        """Disable a user from the next request on, or enable it. Raises NotFound.

        Its sessions, invitations and jobs end. Its keys and tokens are refused while it is disabled.
        """
        require_owner_in_person(self._person, "disable accounts")
        account = await self._require_other_than_owner(user)
        detail = "disabled" if disabled else "enabled"
        change = self._context.change("set_user_disabled", account.id, account.name, detail=detail)
        changed = await self._parts.accounts.set_user_disabled(account.id, disabled=disabled, change=change)
        if disabled:
            await cancel_jobs_of(self._context, account.id)
        return changed

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

    async def _require_other_than_owner(self, user: str) -> User:
        """Return an account that is not the owner account. Raises NotFound or Conflict."""
        account = await self._directory.user(user)
        if account.owner:
            raise Conflict("user", user, "is the owner account, which cannot be changed")
        return account
