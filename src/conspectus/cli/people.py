"""users, groups, keys, sessions and grants: manage access."""

from collections.abc import Sequence
from typing import Annotated, Final

import typer
from rich.console import RenderableType

from conspectus.cli.command import Arguments, Command
from conspectus.cli.declared import option
from conspectus.cli.errors import confirm
from conspectus.cli.options import Confirmation
from conspectus.cli.output import rows_table
from conspectus.cli.session import Session
from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput
from conspectus.model.access import (
    AuditPage,
    DocumentReader,
    EffectiveRole,
    Grant,
    Group,
    Key,
    NewKey,
    Person,
    Principal,
    RoleOrigin,
    User,
)
from conspectus.model.access import Session as BrowserSession
from conspectus.model.parameters import GroupName, UserName

OWNER = "owner"
MEMBER: Final = {"group": "group", "user": "user"}


@dataclass(frozen=True, slots=True)
class Recipient:
    """A user or a group."""

    user: Annotated[str | None, option(UserName)] = None
    group: Annotated[str | None, option(GroupName)] = None

    def grantee(self) -> Principal:
        """Return the user or the group. Raises InvalidInput unless exactly one is given."""
        if (self.user is None) == (self.group is None):
            raise InvalidInput("grantee", "give either --user or --group")
        return Principal("user", self.user) if self.user is not None else Principal("group", self.group or "")


@dataclass(frozen=True, slots=True)
class Everywhere:
    """Whether the roles on all collections are listed."""

    everywhere: Annotated[bool, typer.Option("--all", help="On all collections that you manage.")] = False


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


def _readers_table(readers: Sequence[DocumentReader]) -> RenderableType:
    rows = ((reader.name, reader.role, _explain_role(reader.origins)) for reader in readers)
    return rows_table(("user", "role", "by"), rows)


def _roles_table(roles: Sequence[EffectiveRole]) -> RenderableType:
    rows = (
        (
            effective.collection_name,
            effective.source_name or "all",
            effective.role or "-",
            _explain_role(effective.origins),
        )
        for effective in roles
    )
    return rows_table(("collection", "source", "role", "by"), rows)


def _explain_role(origins: Sequence[RoleOrigin]) -> str:
    """Return where a role comes from."""
    names = {"user": "grant", "collection_owner": "owns the collection", "store_owner": "owns the store"}
    return (
        ", ".join(f"group {origin.group}" if origin.group else names[origin.kind] for origin in origins)
        or "-"
    )


def _confirm_user(session: Session, arguments: Arguments) -> None:
    account = session.engine.people.get_user(arguments["user"])
    confirm(f"Delete the user {account.name}?", yes=arguments["extra"].yes)
    arguments.update(user=account.id, account=account)


def _show_keys(session: Session, keys: Sequence[Key], _: Arguments) -> None:
    names = _names(session)
    columns = ("id", "user", "label", "scopes", "origin", "created", "expires", "last used", "revoked")
    rows = (
        (
            key.id, names.get(key.user, key.user), key.label, " ".join(key.scopes), key.origin, key.created,
            key.expires, key.last_used, key.revoked,
        )
        for key in keys
    )  # fmt: skip
    session.show(keys, rows_table(columns, rows))


def _show_sessions(session: Session, browser_sessions: Sequence[BrowserSession], _: Arguments) -> None:
    names = _names(session)
    columns = ("id", "user", "key", "created", "expires", "last used")
    rows = (
        (
            browser_session.id,
            names.get(browser_session.user, browser_session.user),
            browser_session.key,
            browser_session.created,
            browser_session.expires,
            browser_session.last_used,
        )
        for browser_session in browser_sessions
    )
    session.show(browser_sessions, rows_table(columns, rows))


def _own_store(session: Session, arguments: Arguments) -> None:
    session.new = arguments["user"] == OWNER


def _show_once(session: Session, new_key: NewKey, _: Arguments) -> None:
    ends = (
        "never expires"
        if new_key.key.expires is None
        else f"expires {new_key.key.expires:%Y-%m-%d %H:%M} UTC"
    )
    session.note(f"key {new_key.key.id} with the scopes {' '.join(new_key.key.scopes)} {ends}")
    session.note("store the secret now; it is not shown again")
    session.show(new_key, new_key.secret)


def _show_grants(session: Session, grants: Sequence[Grant], _: Arguments) -> None:
    names = _names(session)
    source_names = {
        str(source.id): source.name
        for source in session.engine.collections.list_sources(collection=session.collection)
    }
    rows = (
        (grant.role, grant.grantee.kind, names.get(grant.grantee.id, grant.grantee.id), source)
        for grant in grants
        for source in ["all" if grant.source is None else source_names.get(grant.source, grant.source)]
    )
    session.show_or_exit(
        grants,
        rows_table(("role", "kind", "to", "source"), rows),
        "no grants yet; only the owner account and its keys have access",
    )


def _to_recipient(_: Session, arguments: Arguments) -> None:
    grantee = arguments["extra"].grantee()
    arguments.update(grantee=grantee, kind=grantee.kind, id=grantee.id)


def _show_revoked(session: Session, is_revoked: bool, _: Arguments) -> None:
    session.show({"revoked": is_revoked}, "Revoked." if is_revoked else "No such grant.", matches=is_revoked)


def _set_collection(session: Session, arguments: Arguments) -> None:
    arguments["collection"] = None if arguments["extra"].everywhere else session.collection


def _show_audit(session: Session, page: AuditPage, _: Arguments) -> None:
    names = _names(session)
    names |= {str(collection.id): collection.name for collection in session.engine.collections.list()}
    rows = (
        (
            entry.created,
            entry.actor_name or names.get(entry.actor, entry.actor),
            entry.action,
            entry.subject_name or names.get(entry.subject or entry.viewed_as, entry.subject),
            entry.collection and names.get(entry.collection, entry.collection),
            entry.detail or entry.query,
        )
        for entry in page.entries
    )
    session.show(page, rows_table(("at", "user", "action", "about", "collection", "detail"), rows))


def _names(session: Session) -> dict[str, str]:
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
        "Created user {name}. Create a key with: conspectus keys create {name}",
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
    "list": Command("people:PeopleService.list_groups", "List groups.", _groups_table, limit=100),
    "add": Command(
        "people:PeopleService.create_group", "Create a group of users.", "created the group {name}",
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
    "remove-member": Command(
        "people:PeopleService.remove_member", "Remove a user from a group.", "removed {user} from {group}",
        document=MEMBER,
    ),
}  # fmt: skip

KEYS_COMMANDS: Final = {
    "list": Command(
        "people:PeopleService.list_keys", "List API keys without their secrets.",
        arguments={"user": "USER"}, defaults={"user": "*"}, show=_show_keys, limit=100,
    ),
    "create": Command(
        "people:PeopleService.create_key", "Create an API key. Its secret is shown once.",
        arguments={"user": "USER"}, options={"scopes": "--scope"}, defaults={"user": OWNER},
        prepare=_own_store, show=_show_once,
    ),
    "revoke": Command("people:PeopleService.revoke_key", "Revoke an API key.", "revoked the key {key}"),
    "rotate": Command(
        "people:PeopleService.rotate_key", "Replace an API key. The new secret is shown once.",
        show=_show_once,
    ),
}  # fmt: skip

SESSIONS_COMMANDS: Final = {
    "list": Command(
        "people:PeopleService.list_sessions", "List the open sessions of browsers.",
        arguments={"user": "USER"}, defaults={"user": "*"}, show=_show_sessions, limit=100,
    ),
    "end": Command("people:PeopleService.end_session", "End a session.", "ended the session {session}"),
}  # fmt: skip

GRANTS_COMMANDS: Final = {
    "list": Command(
        "people:PeopleService.list_grants", "List the roles on the collection and its sources.",
        show=_show_grants, limit=100,
    ),
    "add": Command(
        "people:PeopleService.grant", "Grant a role to a user or a group.",
        "{grantee.id} has the role {role}", arguments={"role": "ROLE"}, only="source", extra=Recipient,
        prepare=_to_recipient,
    ),
    "remove": Command(
        "people:PeopleService.revoke", "Revoke the role of a user or a group.", arguments={}, only="source",
        extra=Recipient, prepare=_to_recipient, show=_show_revoked,
    ),
    "effective": Command(
        "people:PeopleService.effective_roles", "List the roles of a user, and where each comes from.",
        _roles_table, extra=Everywhere, prepare=_set_collection, limit=100,
    ),
    "readers": Command(
        "people:PeopleService.list_readers", "List the users who can read a document, and why.",
        _readers_table, limit=100,
    ),
    "audit": Command(
        "people:PeopleService.list_audit",
        "List changes of accounts, queries as another user and reviews.\n\n"
        "Newest first. Changes of settings are among them.",
        only="limit", defaults={"limit": 20}, show=_show_audit,
    ),
}  # fmt: skip
