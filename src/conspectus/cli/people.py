"""users, groups, keys and grants."""

from collections.abc import Sequence
from typing import Annotated, cast

import typer
from rich.console import RenderableType

from conspectus.cli.errors import confirm
from conspectus.cli.options import Limit, PageLimit, Purge, Yes, instant
from conspectus.cli.output import cell, rows_table
from conspectus.cli.session import Session
from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput
from conspectus.model.access import NewKey, Principal, Role, RoleOrigin, Scope, User
from conspectus.model.trust import Origin

OWNER = "owner"
UserName = Annotated[str, typer.Argument(metavar="USER", help="Name or id of a user.")]
GroupName = Annotated[str, typer.Argument(metavar="GROUP", help="Name or id of a group.")]
KeyName = Annotated[str, typer.Argument(metavar="KEY", help="Id of a key.")]
Part = Annotated[str | None, typer.Option(help="Source of the collection (name or id).")]


@dataclass(frozen=True, slots=True)
class Recipient:
    """A user or a group."""

    user: Annotated[str | None, typer.Option(help="User (name or id).")] = None
    group: Annotated[str | None, typer.Option(help="Group (name or id).")] = None

    def grantee(self) -> Principal:
        """Return the user or the group. Raises InvalidInput unless exactly one is given."""
        if (self.user is None) == (self.group is None):
            raise InvalidInput("grantee", "give either --user or --group")
        return Principal("user", self.user) if self.user is not None else Principal("group", self.group or "")


def whoami(session: Session) -> None:
    """Show who you are: name, id and scopes of the key.

    Give your id to people who cannot name you, for example to be granted a role.
    """
    person = session.engine.people.whoami()
    row = (person.id, person.name, "owner" if person.owner else "", " ".join(person.scopes))
    session.show(person, rows_table(("id", "name", "owner", "scopes"), [row]))


def list_users(session: Session, *, limit: Limit = 100) -> None:
    """List users."""
    users = session.engine.people.list_users()[:limit]
    session.show(users, _users_table(users))


def add_user(name: Annotated[str, typer.Argument(help="Name of the user.")], session: Session) -> None:
    """Create a user."""
    account = session.engine.people.create_user(name)
    session.show(account, cell(f"Created user {name}. Create a key with: conspectus keys create {name}"))


def disable_user(user: UserName, session: Session) -> None:
    """Disable a user. Their data is kept."""
    account = session.engine.people.set_user_disabled(user)
    session.show(account, cell(f"disabled the user {account.name}"))


def enable_user(user: UserName, session: Session) -> None:
    """Enable a user."""
    account = session.engine.people.set_user_disabled(user, disabled=False)
    session.show(account, cell(f"enabled the user {account.name}"))


def delete_user(
    user: UserName,
    session: Session,
    *,
    transfer_to: Annotated[
        str | None, typer.Option(help="User who receives the collections and jobs.")
    ] = None,
    purge: Purge = False,
    yes: Yes = False,
) -> None:
    """Delete a user with their keys and grants."""
    account = session.engine.people.get_user(user)
    confirm(f"Delete the user {account.name}?", yes=yes)
    session.engine.people.delete_user(account.id, transfer_to=transfer_to, purge=purge)
    session.show({"deleted": account}, cell(f"deleted the user {account.name}"))


def list_groups(session: Session, *, limit: Limit = 100) -> None:
    """List groups."""
    groups = session.engine.people.list_groups()[:limit]
    rows = ((group.id, group.name, group.created) for group in groups)
    session.show(groups, rows_table(("id", "name", "created"), rows))


def add_group(name: Annotated[str, typer.Argument(help="Name of the group.")], session: Session) -> None:
    """Create a group of users."""
    group = session.engine.people.create_group(name)
    session.show(group, cell(f"created the group {name}"))


def delete_group(group: GroupName, session: Session) -> None:
    """Delete a group with its grants. Its members stay."""
    session.engine.people.delete_group(group)
    session.show({"deleted": group}, cell(f"deleted the group {group}"))


def members(group: GroupName, session: Session, *, limit: Limit = 100) -> None:
    """List the members of a group."""
    users = session.engine.people.list_members(group)[:limit]
    session.show(users, _users_table(users))


def add_member(group: GroupName, user: UserName, session: Session) -> None:
    """Add a user to a group."""
    session.engine.people.add_member(group, user)
    session.show({"group": group, "user": user}, cell(f"added {user} to {group}"))


def remove_member(group: GroupName, user: UserName, session: Session) -> None:
    """Remove a user from a group."""
    session.engine.people.remove_member(group, user)
    session.show({"group": group, "user": user}, cell(f"removed {user} from {group}"))


def list_keys(
    session: Session,
    *,
    user: Annotated[str, typer.Argument(metavar="[USER]", help="Name or id of a user (default: all).")] = "*",
    limit: Limit = 100,
) -> None:
    """List API keys without their secrets."""
    keys = session.engine.people.list_keys(user)[:limit]
    names = _names(session)
    columns = ("id", "user", "label", "scopes", "origin", "created", "expires", "last used", "revoked")
    rows = (
        (
            key.id, names.get(key.user, key.user), key.label, " ".join(key.scopes), key.origin,
            key.created, key.expires, key.last_used, key.revoked,
        )
        for key in keys
    )  # fmt: skip
    session.show(keys, rows_table(columns, rows))


def create_key(
    session: Session,
    *,
    user: Annotated[str, typer.Argument(help="Name or id of a user (default: the owner).")] = OWNER,
    label: Annotated[str, typer.Option(help="Label.")] = "",
    scopes: Annotated[
        list[str] | None,
        typer.Option("--scope", help="read, write or admin; repeatable (default: what the roles need)."),
    ] = None,
    expires: Annotated[
        str | None,
        typer.Option(help="Expiry as an ISO 8601 time, or never (default: CONSPECTUS_KEY_DAYS from now)."),
    ] = None,
    origin: Annotated[
        Origin | None,
        typer.Option(help="Highest origin of its texts: user, agent, import, tool or web."),
    ] = None,
) -> None:
    """Create an API key. Its secret is shown once."""
    session.new = user == OWNER
    new_key = session.engine.people.create_key(
        user,
        label=label,
        scopes=None if scopes is None else cast(tuple[Scope, ...], tuple(scopes)),
        expires="never" if expires == "never" else instant(expires),
        origin=origin,
    )
    _show_once(new_key, session)


def revoke_key(key: KeyName, session: Session) -> None:
    """Revoke an API key."""
    ended = session.engine.people.revoke_key(key)
    session.show(ended, cell(f"revoked the key {key}"))


def rotate_key(key: KeyName, session: Session) -> None:
    """Replace an API key. The new secret is shown once."""
    new_key = session.engine.people.rotate_key(key)
    _show_once(new_key, session)


def list_grants(session: Session, *, source: Part = None, limit: Limit = 100) -> None:
    """List the roles on the collection and its sources."""
    grants = session.engine.people.list_grants(session.collection, source=source)[:limit]
    names = _names(session)
    parts = {
        str(part.id): part.name
        for part in session.engine.collections.list_sources(collection=session.collection)
    }
    rows = (
        (grant.role, grant.grantee.kind, names.get(grant.grantee.id, grant.grantee.id), part)
        for grant in grants
        for part in ["all" if grant.source is None else parts.get(grant.source, grant.source)]
    )
    session.show(grants, rows_table(("role", "kind", "to", "source"), rows))


def add_grant(
    role: Annotated[Role, typer.Argument(metavar="ROLE", help="viewer, editor, manager or owner.")],
    session: Session,
    to: Recipient,
    *,
    source: Part = None,
) -> None:
    """Grant a role to a user or a group."""
    grant = session.engine.people.grant(session.collection, to.grantee(), role, source=source)
    session.show(grant, cell(f"{to.user or to.group} has the role {role}"))


def remove_grant(session: Session, to: Recipient, *, source: Part = None) -> None:
    """Revoke the role of a user or a group."""
    is_revoked = session.engine.people.revoke(session.collection, to.grantee(), source=source)
    session.show({"revoked": is_revoked}, "Revoked." if is_revoked else "No such grant.", matches=is_revoked)


def effective_roles(
    user: UserName,
    session: Session,
    *,
    everywhere: Annotated[bool, typer.Option("--all", help="On all collections that you manage.")] = False,
    limit: Limit = 100,
) -> None:
    """List the roles of a user, and where each comes from."""
    collection = None if everywhere else session.collection
    roles = session.engine.people.effective_roles(user, collection=collection)[:limit]
    rows = (
        (
            effective.collection_name,
            effective.source_name or "all",
            effective.role or "-",
            _because(effective.origins),
        )
        for effective in roles
    )
    session.show(roles, rows_table(("collection", "source", "role", "by"), rows))


def list_readers(
    document: Annotated[str, typer.Argument(metavar="DOCUMENT", help="Id of a document.")],
    session: Session,
    *,
    limit: Limit = 100,
) -> None:
    """List the users who can read a document, and why."""
    readers = session.engine.people.list_readers(document)[:limit]
    rows = ((reader.name, reader.role, _because(reader.origins)) for reader in readers)
    session.show(readers, rows_table(("user", "role", "by"), rows))


def list_audit(session: Session, *, limit: PageLimit = 20) -> None:
    """List changes of accounts, queries as another user and reviews.

    Newest first. Changes of settings are among them.
    """
    page = session.engine.people.list_audit(limit=limit)
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


def _because(origins: Sequence[RoleOrigin]) -> str:
    """Where a role comes from."""
    names = {"user": "grant", "collection_owner": "owns the collection", "store_owner": "owns the store"}
    return (
        ", ".join(f"group {origin.group}" if origin.group else names[origin.kind] for origin in origins)
        or "-"
    )


def _show_once(new_key: NewKey, session: Session) -> None:
    ends = (
        "never expires"
        if new_key.key.expires is None
        else f"expires {new_key.key.expires:%Y-%m-%d %H:%M} UTC"
    )
    session.note(f"key {new_key.key.id} with the scopes {' '.join(new_key.key.scopes)} {ends}")
    session.note("store the secret now; it is not shown again")
    session.show(new_key, new_key.secret)


def _names(session: Session) -> dict[str, str]:
    """Names of users and groups by id, which only the owner account may list."""
    if not session.engine.people.whoami().owner:
        return {}
    users = {str(user.id): user.name for user in session.engine.people.list_users()}
    return users | {str(group.id): group.name for group in session.engine.people.list_groups()}


def _users_table(users: Sequence[User]) -> RenderableType:
    rows = (
        (user.id, user.name, user.created, "owner" if user.owner else "", user.disabled) for user in users
    )
    return rows_table(("id", "name", "created", "owner", "disabled"), rows)
