"""Whom a person may name: everybody by id, and by name those whom the person may know."""

from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

from conspectus.errors import NotFound
from conspectus.model.access import GranteeKind, Group, Person, User
from conspectus.model.ids import is_uuid
from conspectus.ports.accounts import Accounts

Account = TypeVar("Account", User, Group)
ADVICE: Final[Mapping[GranteeKind, str]] = {
    "user": (
        "by name you reach only people with whom you share a group, a collection or a source. Use the id,"
        " which `conspectus whoami`, the console and GET /api/v1/me show its user, or ask an administrator"
    ),
    "group": (
        "by name you reach only groups that you are in, or that have a role where you have one. Use the id,"
        " which an administrator sees"
    ),
}
"""What to do if a name leads nowhere."""


class Directory:
    """The users and groups that one person may name.

    A name that does not exist and one that the person may not know raise the same NotFound, after the same
    reads: a name is only compared with names of people whom the person may know.
    """

    def __init__(self, person: Person, accounts: Accounts, *, is_open: bool) -> None:
        self._person = person
        self._accounts = accounts
        self._knows_all = person.owner or is_open

    async def user(self, name: str) -> User:
        """Return the user of that id or name. Raises NotFound."""
        if self._knows_all or is_uuid(name):
            user = await self._accounts.user(name)
        else:
            user = _find_account((await self._accounts.list_acquaintances(self._person.id)).users, name)
        if user is None:
            raise self._not_found("user", name)
        return user

    async def group(self, name: str) -> Group:
        """Return the group of that id or name. Raises NotFound."""
        if self._knows_all or is_uuid(name):
            groups = await self._accounts.groups()
        else:
            groups = (await self._accounts.list_acquaintances(self._person.id)).groups
        group = _find_account(groups, name)
        if group is None:
            raise self._not_found("group", name)
        return group

    def _not_found(self, kind: GranteeKind, name: str) -> NotFound:
        return NotFound(kind, name) if self._knows_all else NotFound(kind, name, ADVICE[kind])


def _find_account(accounts: Sequence[Account], name: str) -> Account | None:
    """Return the account with that id, else with that name."""
    by_name = {account.name: account for account in accounts}
    by_id = {str(account.id): account for account in accounts}
    return by_id.get(name, by_name.get(name))
