"""users, groups, keys and grants."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, get_args

import typer
from rich.console import RenderableType

from conspectus.cli.errors import NOTHING, confirm
from conspectus.cli.options import Common, Limit, Yes, instant
from conspectus.cli.output import cell, note, rows_table, show
from conspectus.cli.session import Session, opened
from conspectus.errors import InvalidInput
from conspectus.model.access import SCOPES, Grant, Key, NewKey, Principal, Role, Scope, User

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
        """The user or the group. Raises InvalidInput unless exactly one is given."""
        if (self.user is None) == (self.group is None):
            raise InvalidInput("grantee", "give either --user or --group")
        return Principal("user", self.user) if self.user is not None else Principal("group", self.group or "")


def list_users(common: Common, *, limit: Limit = 100) -> None:
    """List users."""
    with opened(common) as session:
        found = session.engine.people.users()[:limit]
    show(found, _users_table(found), as_json=common.json)


def add_user(name: Annotated[str, typer.Argument(help="Name of the user.")], common: Common) -> None:
    """Create a user."""
    with opened(common) as session:
        made = session.engine.people.create_user(name)
    show(
        made,
        cell(f"Created user {name}. Create a key with: conspectus keys create {name}"),
        as_json=common.json,
    )


def disable_user(user: UserName, common: Common) -> None:
    """Disable a user. Their data is kept."""
    with opened(common) as session:
        found = session.engine.people.disable_user(user)
    show(found, cell(f"disabled the user {found.name}"), as_json=common.json)


def enable_user(user: UserName, common: Common) -> None:
    """Enable a user."""
    with opened(common) as session:
        found = session.engine.people.disable_user(user, disabled=False)
    show(found, cell(f"enabled the user {found.name}"), as_json=common.json)


def delete_user(
    user: UserName,
    common: Common,
    *,
    transfer_to: Annotated[
        str | None, typer.Option(help="User who receives the collections and jobs.")
    ] = None,
    yes: Yes = False,
) -> None:
    """Delete a user with their keys and grants."""
    with opened(common) as session:
        found = session.engine.people.get_user(user)
        confirm(f"Delete the user {found.name}?", yes=yes)
        session.engine.people.delete_user(found.id, transfer_to=transfer_to)
    show({"deleted": found}, cell(f"deleted the user {found.name}"), as_json=common.json)


def list_groups(common: Common, *, limit: Limit = 100) -> None:
    """List groups."""
    with opened(common) as session:
        found = session.engine.people.groups()[:limit]
    rows = ((each.id, each.name, _when(each.created)) for each in found)
    show(found, rows_table(("id", "name", "created"), rows), as_json=common.json)


def add_group(name: Annotated[str, typer.Argument(help="Name of the group.")], common: Common) -> None:
    """Create a group of users."""
    with opened(common) as session:
        made = session.engine.people.create_group(name)
    show(made, cell(f"created the group {name}"), as_json=common.json)


def delete_group(group: GroupName, common: Common) -> None:
    """Delete a group with its grants. Its members stay."""
    with opened(common) as session:
        session.engine.people.delete_group(group)
    show({"deleted": group}, cell(f"deleted the group {group}"), as_json=common.json)


def members(group: GroupName, common: Common, *, limit: Limit = 100) -> None:
    """List the members of a group."""
    with opened(common) as session:
        found = session.engine.people.members(group)[:limit]
    show(found, _users_table(found), as_json=common.json)


def add_member(group: GroupName, user: UserName, common: Common) -> None:
    """Add a user to a group."""
    with opened(common) as session:
        session.engine.people.add_member(group, user)
    show({"group": group, "user": user}, cell(f"added {user} to {group}"), as_json=common.json)


def remove_member(group: GroupName, user: UserName, common: Common) -> None:
    """Remove a user from a group."""
    with opened(common) as session:
        session.engine.people.remove_member(group, user)
    show({"group": group, "user": user}, cell(f"removed {user} from {group}"), as_json=common.json)


def list_keys(
    common: Common,
    *,
    user: Annotated[str, typer.Argument(metavar="[USER]", help="Name or id of a user (default: all).")] = "*",
    limit: Limit = 100,
) -> None:
    """List API keys without their secrets."""
    with opened(common) as session:
        found = session.engine.people.keys(user)[:limit]
        names = _names(session)
    show(found, _keys_table(found, names), as_json=common.json)


def create_key(
    common: Common,
    *,
    user: Annotated[str, typer.Argument(help="Name or id of a user (default: the owner).")] = OWNER,
    label: Annotated[str, typer.Option(help="Label.")] = "",
    scopes: Annotated[
        list[str] | None, typer.Option("--scope", help="read, write or admin; repeatable (default: all).")
    ] = None,
    expires: Annotated[str | None, typer.Option(help="Expiry as an ISO 8601 time (default: never).")] = None,
) -> None:
    """Create an API key. Its secret is shown once."""
    chosen = SCOPES if scopes is None else tuple(_scope(each) for each in scopes)
    with opened(common, new=user == OWNER) as session:
        made = session.engine.people.create_key(user, label=label, scopes=chosen, expires=instant(expires))
    _show_once(made, common)


def revoke_key(key: KeyName, common: Common) -> None:
    """Revoke an API key."""
    with opened(common) as session:
        ended = session.engine.people.revoke_key(key)
    show(ended, cell(f"revoked the key {key}"), as_json=common.json)


def rotate_key(key: KeyName, common: Common) -> None:
    """Replace an API key. The new secret is shown once."""
    with opened(common) as session:
        made = session.engine.people.rotate_key(key)
    _show_once(made, common)


def list_grants(common: Common, *, source: Part = None, limit: Limit = 100) -> None:
    """List the roles on the collection and its sources."""
    with opened(common) as session:
        found = session.engine.people.grants(session.collection, source=source)[:limit]
        names = _names(session)
        parts = {
            str(each.id): each.name
            for each in session.engine.collections.sources(collection=session.collection)
        }
    rows = (
        (each.role, each.grantee.kind, names.get(each.grantee.id, each.grantee.id), _part(each, parts))
        for each in found
    )
    show(found, rows_table(("role", "kind", "to", "source"), rows), as_json=common.json)


def add_grant(
    role: Annotated[Role, typer.Argument(metavar="ROLE", help="viewer, editor, manager or owner.")],
    common: Common,
    to: Recipient,
    *,
    source: Part = None,
) -> None:
    """Grant a role to a user or a group."""
    with opened(common) as session:
        given = session.engine.people.grant(session.collection, to.grantee(), role, source=source)
    show(given, cell(f"{to.user or to.group} has the role {role}"), as_json=common.json)


def remove_grant(common: Common, to: Recipient, *, source: Part = None) -> None:
    """Revoke the role of a user or a group."""
    with opened(common) as session:
        found = session.engine.people.revoke(session.collection, to.grantee(), source=source)
    show({"revoked": found}, "Revoked." if found else "No such grant.", as_json=common.json)
    if not found:
        raise typer.Exit(NOTHING)


def _show_once(made: NewKey, common: Common) -> None:
    if not common.json:
        note(f"key {made.key.id}: store the secret now; it is not shown again")
    show(made, made.secret, as_json=common.json)


def _names(session: Session) -> dict[str, str]:
    """Names of users and groups by id."""
    users = {str(each.id): each.name for each in session.engine.people.users()}
    return users | {str(each.id): each.name for each in session.engine.people.groups()}


def _users_table(found: Sequence[User]) -> RenderableType:
    rows = (
        (each.id, each.name, _when(each.created), "owner" if each.owner else "", _yes(each.disabled))
        for each in found
    )
    return rows_table(("id", "name", "created", "owner", "disabled"), rows)


def _keys_table(found: Sequence[Key], names: dict[str, str]) -> RenderableType:
    rows = (
        (
            each.id,
            names.get(each.user, each.user),
            each.label,
            " ".join(each.scopes),
            *map(_when, (each.created, each.expires, each.last_used, each.revoked)),
        )
        for each in found
    )
    return rows_table(("id", "user", "label", "scopes", "created", "expires", "last used", "revoked"), rows)


def _part(grant: Grant, parts: dict[str, str]) -> str:
    return "all" if grant.source is None else parts.get(grant.source, grant.source)


def _scope(name: str) -> Scope:
    found: dict[str, Scope] = {each: each for each in get_args(Scope)}
    if name not in found:
        raise InvalidInput("scope", f"unknown scope {name!r}; expected one of: {', '.join(SCOPES)}")
    return found[name]


def _when(instant: datetime | None) -> str:
    return "-" if instant is None else f"{instant:%Y-%m-%d %H:%M}"


def _yes(value: bool) -> str:
    return "yes" if value else ""
