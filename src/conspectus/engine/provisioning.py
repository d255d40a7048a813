"""Users and groups that an identity provider manages by SCIM: made, changed, disabled and handed back.

A name never leads to an account: a user or group whose name is taken gets another one. The provider sees and
changes what it made, and users whom their verified identity leads to. It never reaches the owner account.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final, TypeVar
from uuid import uuid4

from conspectus.access.account_names import MAX_NAME_LENGTH
from conspectus.access.sign_ins import identity_id, list_new_names
from conspectus.access.token_claims import MAX_CLAIM, MAX_SUBJECT
from conspectus.engine.context import EngineContext
from conspectus.engine.job_cancellation import cancel_jobs_of
from conspectus.engine.new_user_names import is_free_name
from conspectus.engine.owner_account import ensure_owner_account
from conspectus.errors import Conflict, InvalidInput, NotFound
from conspectus.model.access import PROVISIONER, AccountChange, Group, User
from conspectus.model.identities import Identity
from conspectus.model.ids import GroupId, UserId
from conspectus.model.provisioning import (
    GroupAttributes,
    ProvisionedGroup,
    ProvisionedUser,
    UserAttributes,
)

MAX_EXTERNAL_ID: Final = 255

Provisioned = TypeVar("Provisioned", ProvisionedUser, ProvisionedGroup)
UserChange = Callable[[ProvisionedUser], Awaitable[UserAttributes]]
"""Returns what a user becomes. Raises what refuses the change."""
GroupChange = Callable[[ProvisionedGroup], Awaitable[GroupAttributes]]


class Provisioning:
    """The users and groups of the provider. Its changes are made one after the other in a process."""

    def __init__(self, context: EngineContext) -> None:
        self._context = context.as_person(PROVISIONER)
        self._parts = context.parts
        self._accounts = context.parts.accounts
        self._changing = asyncio.Lock()

    async def list_users(self) -> Sequence[ProvisionedUser]:
        """Return the users of the provider, oldest first."""
        return await self._accounts.provisioned_users()

    async def get_user(self, user: str) -> ProvisionedUser:
        """Return a user of the provider. Raises NotFound."""
        return _find(await self.list_users(), user, lambda provisioned: provisioned.user.id, "user")

    async def create_user(self, attributes: UserAttributes) -> ProvisionedUser:
        """Create a user, or take over the user who is mapped to the same identity.

        Raises InvalidInput, or Conflict for the name of another user of the provider.
        """
        async with self._changing:
            self._check_user(attributes)
            await ensure_owner_account(self._context)
            provisioned, is_new, identity = await self._plan_user(attributes)
            user = provisioned.user
            change = self._describe("create_user", user, "" if is_new else "the account of its identity")
            if identity is not None:
                identity = replace(identity, created=change.created)
            await self._accounts.add_provisioned_user(provisioned, change, identity=identity, is_new=is_new)
            if not attributes.active and not user.disabled:
                await self._set_active(user, False)
            return await self.get_user(user.id)

    async def change_user(self, user: str, change: UserChange) -> ProvisionedUser:
        """Change a user of the provider. Raises NotFound, InvalidInput, Conflict, or what `change` raises.

        One who is not active has no sessions, invitations, keys and jobs any more. A user whom an
        administrator disabled is enabled when the provider disables and enables it, and not before.
        """
        async with self._changing:
            current = await self.get_user(user)
            attributes = await change(current)
            if not attributes.active:
                await self._set_active(current.user, False)
            self._check_user(attributes)
            names = (attributes.user_name, attributes.external_id)
            is_renamed = names != (current.user_name, current.external_id)
            if is_renamed:
                await self._map_identity(current, attributes)
            if is_renamed or attributes.active != current.active:
                changed = replace(
                    current,
                    user_name=attributes.user_name,
                    external_id=attributes.external_id,
                    active=attributes.active,
                    modified=self._parts.clock(),
                )
                renaming = self._describe("set_user_name", current.user)
                await self._accounts.put_provisioned_user(changed, renaming if is_renamed else None)
            if attributes.active and not current.active:
                await self._set_active(current.user, True)
            return await self.get_user(user)

    async def delete_user(self, user: str) -> None:
        """Disable a user for good: the account and its data stay, and an administrator may delete them.

        Its identity is unmapped, and memberships by the provider end. Raises NotFound.
        """
        async with self._changing:
            current = (await self.get_user(user)).user
            await self._set_active(current, False)
            for identity in await self._accounts.identities(current.id):
                if identity.issuer == self._parts.settings.oidc_issuer:
                    await self._accounts.remove_identity(identity, self._describe_identity(current, "unmap"))
            change = self._describe("delete_user", current, "disabled; its data stay")
            await self._accounts.remove_provisioned_user(current.id, change)

    async def list_groups(self) -> Sequence[ProvisionedGroup]:
        """Return the groups of the provider, oldest first."""
        return await self._accounts.provisioned_groups()

    async def get_group(self, group: str) -> ProvisionedGroup:
        """Return a group of the provider. Raises NotFound."""
        return _find(await self.list_groups(), group, lambda provisioned: provisioned.group.id, "group")

    async def create_group(self, attributes: GroupAttributes) -> ProvisionedGroup:
        """Create a group, which gives no access until it has a role. Raises InvalidInput."""
        async with self._changing:
            await self._check_group(attributes)
            id, now = GroupId(str(uuid4())), self._parts.clock()
            names = {group.name for group in await self._accounts.groups()}
            name = next(name for name in list_new_names(id, attributes.display_name) if name not in names)
            provisioned = ProvisionedGroup(
                Group(id, name, now), attributes.display_name, attributes.external_id, now
            )
            change = self._describe("create_group", provisioned.group)
            await self._accounts.add_provisioned_group(provisioned, change)
            await self._set_members(provisioned, attributes)
            return await self.get_group(id)

    async def change_group(self, group: str, change: GroupChange) -> ProvisionedGroup:
        """Change a group of the provider. Raises NotFound, InvalidInput, or what `change` raises."""
        async with self._changing:
            current = await self.get_group(group)
            attributes = await change(current)
            await self._check_group(attributes)
            await self._set_members(current, attributes)
            return await self.get_group(group)

    async def delete_group(self, group: str) -> None:
        """Delete a group with its grants. Raises NotFound."""
        async with self._changing:
            deleted = (await self.get_group(group)).group
            change = self._describe("delete_group", deleted)
            await self._accounts.delete_group(deleted.id, change)

    async def _plan_user(self, attributes: UserAttributes) -> tuple[ProvisionedUser, bool, Identity | None]:
        """Return the user to store, whether it is a new account, and its new identity, if any."""
        now, subject = self._parts.clock(), self._subject(attributes)
        names = (attributes.user_name, attributes.external_id, now, attributes.active)
        if subject is not None:
            signed_in = await self._accounts.find_sign_in(self._identity_id(subject))
            if signed_in is not None:
                self._require_managed(signed_in.user)
                return ProvisionedUser(signed_in.user, *names), False, None
        id = UserId(str(uuid4()))
        name = await self._choose_name(id, attributes.user_name)
        user = User(id, name, now, disabled=not attributes.active)
        identity = None if subject is None else self._new_identity(user, subject)
        return ProvisionedUser(user, *names), True, identity

    async def _choose_name(self, user: UserId, user_name: str) -> str:
        """Return the name here of a new user: that at the provider if it is free. Raises Conflict."""
        names = {account.name for account in await self._accounts.users()}
        for name in list_new_names(user, user_name):
            if name not in names and await is_free_name(self._parts, name):
                return name
        raise Conflict("user", user_name, "has no free name here; rename the account that has it")

    def _check_user(self, attributes: UserAttributes) -> None:
        """Raise InvalidInput for names that cannot be stored."""
        _check_text("userName", attributes.user_name, MAX_CLAIM)
        self._context.screen_value("provisioned_users.user_name", attributes.user_name)
        _check_external_id(attributes.external_id)
        if self._parts.settings.scim_subject == "externalId" and attributes.external_id is None:
            raise InvalidInput("externalId", "is required: it is the subject of the user's tokens")
        if self._parts.settings.scim_subject == "userName":
            _check_text("userName", attributes.user_name, MAX_SUBJECT)

    async def _check_group(self, attributes: GroupAttributes) -> None:
        """Raise InvalidInput for names that cannot be stored, and for members who are no users."""
        _check_text("displayName", attributes.display_name, MAX_CLAIM)
        self._context.screen_value("provisioned_groups.display_name", attributes.display_name)
        _check_external_id(attributes.external_id)
        unknown = attributes.members - {provisioned.user.id for provisioned in await self.list_users()}
        if unknown:
            raise InvalidInput("members", f"{min(unknown)[:MAX_NAME_LENGTH]!r} is no user of the provider")

    async def _set_active(self, user: User, active: bool) -> None:
        """Enable a user, or disable it and end its sessions, invitations, keys and jobs."""
        detail = "enabled" if active else "disabled; sessions, invitations and keys ended"
        change = self._describe("set_user_disabled", user, detail)
        await self._accounts.set_user_disabled(
            user.id,
            disabled=not active,
            change=None if active != user.disabled else change,
            revoke_keys=None if active else self._parts.clock(),
        )
        if not active:
            await cancel_jobs_of(self._context, user.id)

    async def _set_members(self, current: ProvisionedGroup, attributes: GroupAttributes) -> None:
        """Store the names of a group and its members, if anything of it changes."""
        joining = attributes.members - set(current.members)
        leaving = set(current.members) - attributes.members
        names = (attributes.display_name, attributes.external_id)
        is_renamed = names != (current.display_name, current.external_id)
        if not joining and not leaving and not is_renamed:
            return
        changed = replace(
            current,
            display_name=attributes.display_name,
            external_id=attributes.external_id,
            modified=self._parts.clock(),
        )
        group, renaming = current.group, self._describe("set_group_name", current.group)
        await self._accounts.put_provisioned_group(
            changed,
            renaming if is_renamed else None,
            joined=await self._describe_members("add_member", joining, group),
            left=await self._describe_members("remove_member", leaving, group),
        )

    async def _describe_members(
        self, action: str, users: Iterable[str], group: Group
    ) -> dict[UserId, AccountChange]:
        named = set(users)
        return {
            provisioned.user.id: self._describe(action, provisioned.user, f"group {group.name}")
            for provisioned in await self.list_users()
            if provisioned.user.id in named
        }

    async def _map_identity(self, current: ProvisionedUser, attributes: UserAttributes) -> None:
        """Let a user sign in with another subject, if that changes. Raises Conflict for that of another."""
        subject, issuer = self._subject(attributes), self._parts.settings.oidc_issuer
        if subject is None:
            return
        id = self._identity_id(subject)
        signed_in = await self._accounts.find_sign_in(id)
        if signed_in is not None and signed_in.user.id != current.user.id:
            raise Conflict("identity", subject, "is that of another user; unmap it first")
        if signed_in is not None:
            return
        for identity in await self._accounts.identities(current.user.id):
            if identity.issuer == issuer:
                await self._accounts.remove_identity(identity, self._describe_identity(current.user, "unmap"))
        change = self._describe_identity(current.user, "map")
        identity = replace(self._new_identity(current.user, subject), created=change.created)
        await self._accounts.add_identity(identity, change)

    def _describe_identity(self, user: User, verb: str) -> AccountChange:
        return self._describe(f"{verb}_identity", user, f"issuer {self._parts.settings.oidc_issuer}")

    def _describe(self, action: str, account: User | Group, detail: str = "") -> AccountChange:
        """Return a change by the provider for the audit log."""
        details = "; ".join(filter(None, (detail, "by SCIM")))
        return self._context.change(action, account.id, account.name, detail=details)

    def _new_identity(self, user: User, subject: str) -> Identity:
        issuer = self._parts.settings.oidc_issuer
        return Identity(self._identity_id(subject), issuer, subject, user.id, self._parts.clock())

    def _identity_id(self, subject: str) -> str:
        settings = self._parts.settings
        return identity_id(settings.oidc_issuer, subject, settings.oidc_subject_claim)

    def _subject(self, attributes: UserAttributes) -> str | None:
        """Return the subject of the user's tokens; None if the settings do not say which attribute it is."""
        match self._parts.settings.scim_subject:
            case "externalId":
                return attributes.external_id
            case "userName":
                return attributes.user_name
            case _:
                return None

    def _require_managed(self, user: User) -> None:
        """Raise Conflict for the owner account, which no provider manages."""
        if user.owner:
            raise Conflict("user", user.name, "is the owner account, which no provider manages")


def _find(
    accounts: Sequence[Provisioned], id: str, id_of: Callable[[Provisioned], str], kind: str
) -> Provisioned:
    """Return the account of that id. Raises NotFound."""
    for account in accounts:
        if id_of(account) == id:
            return account
    raise NotFound(kind, id)


def _check_text(name: str, text: str, maximum: int) -> None:
    """Raise InvalidInput for an empty, long or invisible text."""
    if not 0 < len(text) <= maximum or not text.isprintable() or text != text.strip():
        raise InvalidInput(name, f"must have 1 to {maximum} visible characters")


def _check_external_id(external_id: str | None) -> None:
    """Raise InvalidInput for an id at the provider that cannot be stored."""
    if external_id is not None:
        _check_text("externalId", external_id, MAX_EXTERNAL_ID)
