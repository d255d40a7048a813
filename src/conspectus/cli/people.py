"""users, groups, keys and grants."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, get_args

import typer
from rich.console import RenderableType
from rich.table import Table

from conspectus.cli.errors import FAILED, NOTHING
from conspectus.cli.options import Common
from conspectus.cli.output import cell, note, show
from conspectus.cli.session import Session, opened
from conspectus.errors import InvalidInput
from conspectus.model.access import SCOPES, Grant, Key, NewKey, Principal, Role, Scope, User
from conspectus.text.times import parse_instant

OWNER = "owner"
UserName = Annotated[str, typer.Argument(metavar="USER", help="Name or id of a user.")]
GroupName = Annotated[str, typer.Argument(metavar="GROUP", help="Name or id of a group.")]
KeyName = Annotated[str, typer.Argument(metavar="KEY", help="Id of a key.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Part = Annotated[str | None, typer.Option(help="Only for this source of the collection (name or id).")]


@dataclass(frozen=True, slots=True)
class Whom:
    """A user or a group."""

    user: Annotated[str | None, typer.Option(help="A user, by name or id.")] = None
    group: Annotated[str | None, typer.Option(help="A group, by name or id.")] = None

    def grantee(self) -> Principal:
        """The one that was named. Raises InvalidInput unless it is exactly one."""
        if (self.user is None) == (self.group is None):
            raise InvalidInput("grantee", "say whom: --user or --group")
        return Principal("user", self.user) if self.user is not None else Principal("group", self.group or "")


def list_users(common: Common) -> None:
    """Show all users."""
    with opened(common) as session:
        found = session.engine.users()
    show(found, _users_table(found), as_json=common.json)


def add_user(name: Annotated[str, typer.Argument(help="The new user's name.")], common: Common) -> None:
    """Make a user, who can come in once there is a key."""
    with opened(common) as session:
        made = session.engine.create_user(name)
    show(made, cell(f"made the user {name}; `keys add {name}` lets it in"), as_json=common.json)


def disable_user(user: UserName, common: Common) -> None:
    """Shut a user out from its next request on; it keeps what it has."""
    with opened(common) as session:
        found = session.engine.disable_user(user)
    show(found, cell(f"{found.name} is shut out"), as_json=common.json)


def enable_user(user: UserName, common: Common) -> None:
    """Let a disabled user in again."""
    with opened(common) as session:
        found = session.engine.disable_user(user, disabled=False)
    show(found, cell(f"{found.name} may come in"), as_json=common.json)


def delete_user(
    user: UserName,
    common: Common,
    *,
    heir: Annotated[str | None, typer.Option(help="The user that gets its collections and jobs.")] = None,
    yes: Yes = False,
) -> None:
    """Delete a user with its keys and what it was granted."""
    with opened(common) as session:
        found = session.engine.find_user(user)
        if not yes and not typer.confirm(f"Delete the user {found.name}?", err=True):
            note("nothing was deleted")
            raise typer.Exit(FAILED)
        session.engine.delete_user(found.id, heir=heir)
    show({"deleted": found}, cell(f"deleted the user {found.name}"), as_json=common.json)


def list_groups(common: Common) -> None:
    """Show all groups."""
    with opened(common) as session:
        found = session.engine.groups()
    rows = ((each.id, each.name, _when(each.created)) for each in found)
    show(found, _rows_table(("id", "name", "created"), rows), as_json=common.json)


def add_group(name: Annotated[str, typer.Argument(help="The new group's name.")], common: Common) -> None:
    """Make a group, to which roles can be granted together."""
    with opened(common) as session:
        made = session.engine.create_group(name)
    show(made, cell(f"made the group {name}"), as_json=common.json)


def delete_group(group: GroupName, common: Common) -> None:
    """Delete a group with what it was granted; its members stay."""
    with opened(common) as session:
        session.engine.delete_group(group)
    show({"deleted": group}, cell(f"deleted the group {group}"), as_json=common.json)


def members(group: GroupName, common: Common) -> None:
    """Show who is in a group."""
    with opened(common) as session:
        found = session.engine.members(group)
    show(found, _users_table(found), as_json=common.json)


def join(group: GroupName, user: UserName, common: Common) -> None:
    """Put a user into a group."""
    with opened(common) as session:
        session.engine.join(group, user)
    show({"group": group, "user": user}, cell(f"{user} is in {group}"), as_json=common.json)


def leave(group: GroupName, user: UserName, common: Common) -> None:
    """Take a user out of a group."""
    with opened(common) as session:
        session.engine.leave(group, user)
    show({"group": group, "user": user}, cell(f"{user} is not in {group}"), as_json=common.json)


def list_keys(
    common: Common,
    *,
    user: Annotated[
        str, typer.Argument(metavar="[USER]", help="Name or id of a user; without it all.")
    ] = "*",
) -> None:
    """Show the keys of a user or of all, without their secrets."""
    with opened(common) as session:
        found = session.engine.keys(user)
        names = _names(session)
    show(found, _keys_table(found, names), as_json=common.json)


def add_key(
    common: Common,
    *,
    user: Annotated[str, typer.Argument(help="Name or id of a user; without it the owner.")] = OWNER,
    label: Annotated[str, typer.Option(help="What the key is for.")] = "",
    scopes: Annotated[
        list[str] | None, typer.Option("--scope", help="read, write or admin; may be repeated. Default: all.")
    ] = None,
    expires: Annotated[str | None, typer.Option(help="When it ends: an ISO 8601 time.")] = None,
) -> None:
    """Make a key and show its secret, once."""
    chosen = SCOPES if scopes is None else tuple(_scope(each) for each in scopes)
    ends = None if expires is None else parse_instant(expires)
    with opened(common, new=user == OWNER) as session:
        made = session.engine.create_key(user, label=label, scopes=chosen, expires=ends)
    _show_once(made, common)


def revoke_key(key: KeyName, common: Common) -> None:
    """End a key's validity for the very next request."""
    with opened(common) as session:
        ended = session.engine.revoke_key(key)
    show(ended, cell(f"revoked the key {key}"), as_json=common.json)


def rotate_key(key: KeyName, common: Common) -> None:
    """Replace a key by a new one with the same scopes and expiry, and show its secret, once."""
    with opened(common) as session:
        made = session.engine.rotate_key(key)
    _show_once(made, common)


def list_grants(common: Common, *, source: Part = None) -> None:
    """Show who has which role on the collection and its sources."""
    with opened(common) as session:
        found = session.engine.grants(session.collection, source=source)
        names = _names(session)
        parts = {str(each.id): each.name for each in session.engine.sources(collection=session.collection)}
    rows = (
        (each.role, each.grantee.kind, names.get(each.grantee.id, each.grantee.id), _part(each, parts))
        for each in found
    )
    show(found, _rows_table(("role", "kind", "to", "source"), rows), as_json=common.json)


def add_grant(
    role: Annotated[Role, typer.Argument(help="viewer, editor, manager or owner.")],
    common: Common,
    whom: Whom,
    *,
    source: Part = None,
) -> None:
    """Give a user or a group a role, in place of the one it had there."""
    with opened(common) as session:
        given = session.engine.grant(session.collection, whom.grantee(), role, source=source)
    show(given, cell(f"{whom.user or whom.group} is {role} now"), as_json=common.json)


def remove_grant(common: Common, whom: Whom, *, source: Part = None) -> None:
    """Take a user's or a group's role away for the very next request."""
    with opened(common) as session:
        found = session.engine.revoke(session.collection, whom.grantee(), source=source)
    show({"revoked": found}, "taken away" if found else "there was none", as_json=common.json)
    if not found:
        raise typer.Exit(NOTHING)


def _show_once(made: NewKey, common: Common) -> None:
    if not common.json:
        note(f"key {made.key.id}: keep the secret, it is shown only now")
    show(made, made.secret, as_json=common.json)


def _names(session: Session) -> dict[str, str]:
    """What users and groups are called, by id."""
    users = {str(each.id): each.name for each in session.engine.users()}
    return users | {str(each.id): each.name for each in session.engine.groups()}


def _users_table(found: Sequence[User]) -> RenderableType:
    rows = (
        (each.id, each.name, _when(each.created), "owner" if each.owner else "", _yes(each.disabled))
        for each in found
    )
    return _rows_table(("id", "name", "created", "owner", "disabled"), rows)


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
    return _rows_table(("id", "user", "label", "scopes", "created", "expires", "last used", "revoked"), rows)


def _rows_table(columns: Iterable[str], rows: Iterable[Sequence[str]]) -> RenderableType:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*map(cell, row))
    return table


def _part(grant: Grant, parts: dict[str, str]) -> str:
    return "all" if grant.source is None else parts.get(grant.source, grant.source)


def _scope(name: str) -> Scope:
    found: dict[str, Scope] = {each: each for each in get_args(Scope)}
    if name not in found:
        raise InvalidInput("scope", f"must be one of {', '.join(SCOPES)}")
    return found[name]


def _when(instant: datetime | None) -> str:
    return "-" if instant is None else f"{instant:%Y-%m-%d %H:%M}"


def _yes(value: bool) -> str:
    return "yes" if value else ""
