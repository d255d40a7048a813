"""users and groups: manage accounts."""

from collections.abc import Sequence
from typing import Final

from rich.console import RenderableType

from conspectus.cli.command import Arguments, Command
from conspectus.cli.errors import confirm
from conspectus.cli.options import Confirmation
from conspectus.cli.output import rows_table
from conspectus.cli.session import Opening, Session
from conspectus.model.access import Group, Person, User
from conspectus.model.identities import GroupSyncReport

MEMBER: Final = {"group": "group", "user": "user"}


def _person_table(person: Person) -> RenderableType:
    row = (person.id, person.name, "owner" if person.owner else "", " ".join(person.scopes))
    return rows_table(("id", "name", "owner", "scopes"), [row])


def _users_table(users: Sequence[User]) -> RenderableType:
    rows = (
        (user.id, user.name, user.created, "owner" if user.owner else "", user.disabled) for user in users
    )
    return rows_table(("id", "name", "created", "owner", "disabled"), rows)


def _groups_table(groups: Sequence[Group]) -> RenderableType:
    return rows_table(("id", "name", "created"), ((group.id, group.name, group.created) for group in groups))


def _sync_report(report: GroupSyncReport) -> RenderableType:
    columns = ("groups", "members", "joined", "left", "unmapped", "gone")
    row = (report.groups, report.members, report.joined, report.left, len(report.unmapped), len(report.gone))
    return rows_table(columns, [row])


def _confirm_user(session: Session, arguments: Arguments) -> None:
    account = session.engine.people.get_user(arguments["user"])
    confirm(f"Delete the user {account.name}?", yes=arguments["extra"].yes)
    arguments.update(user=account.id, account=account)


def account_names(session: Session) -> dict[str, str]:
    """Return names of users and groups by id, which only the owner account may list."""
    if not session.engine.people.whoami().owner:
        return {}
    users = {str(user.id): user.name for user in session.engine.people.list_users()}
    return users | {str(group.id): group.name for group in session.engine.people.list_groups()}


whoami = Command(
    "people:PeopleService.whoami",
    "Show who you are: name, id and scopes of the key.\n\n"
    "Give your id to people who cannot name you, for example to be granted a role.",
    _person_table,
)


USERS_COMMANDS: Final = {
    "list": Command(
        "people:PeopleService.list_users", "List users.", _users_table, limit=100,
        nothing="no users yet; everything belongs to you. conspectus users add NAME creates one",
    ),
    "add": Command(
        "people:PeopleService.create_user", "Create a user.",
        "Created user {name}. Create a key with: conspectus keys create {name}", opening=Opening(new=True),
    ),
    "disable": Command(
        "people:PeopleService.set_user_disabled", "Disable a user. Their data is kept.",
        "disabled the user {result.name}", fixed={"disabled": True},
    ),
    "enable": Command(
        "people:PeopleService.set_user_disabled", "Enable a user.", "enabled the user {result.name}",
        fixed={"disabled": False},
    ),
    "delete": Command(
        "people:PeopleService.delete_user", "Delete a user with their keys and grants.",
        "deleted the user {account.name}", extra=Confirmation, prepare=_confirm_user,
        document={"deleted": "account"},
    ),
}  # fmt: skip


GROUPS_COMMANDS: Final = {
    "list": Command(
        "people:PeopleService.list_groups", "List groups.", _groups_table, limit=100, nothing="no groups",
    ),
    "add": Command(
        "people:PeopleService.create_group", "Create a group of users.", "created the group {name}",
        opening=Opening(new=True),
    ),
    "delete": Command(
        "people:PeopleService.delete_group", "Delete a group with its grants. Its members stay.",
        "deleted the group {group}", document={"deleted": "group"},
    ),
    "members": Command(
        "people:PeopleService.list_members", "List the members of a group.", _users_table, limit=100,
    ),
    "add-member": Command(
        "people:PeopleService.add_member", "Add a user to a group.", "added {user} to {group}",
        document=MEMBER,
    ),
    "sync": Command(
        "identities:IdentityService.sync_groups", "Read the mapped groups of the LDAP directory.",
        _sync_report,
    ),
    "remove-member": Command(
        "people:PeopleService.remove_member", "Remove a user from a group.", "removed {user} from {group}",
        document=MEMBER,
    ),
}  # fmt: skip
