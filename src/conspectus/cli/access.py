"""grants: manage roles, and read the audit log."""

from collections.abc import Sequence
from typing import Annotated, Final

import typer
from rich.console import RenderableType

from conspectus.cli.command import Arguments, Command
from conspectus.cli.declared import option
from conspectus.cli.output import rows_table
from conspectus.cli.people import account_names
from conspectus.cli.session import Session
from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput
from conspectus.model.access import AuditPage, DocumentReader, EffectiveRole, Grant, Principal, RoleOrigin
from conspectus.model.parameters import GroupName, UserName


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


def _show_grants(session: Session, grants: Sequence[Grant], _: Arguments) -> None:
    names = account_names(session)
    source_names = {
        str(source.id): source.name
        for source in session.engine.collections.list_sources(collection=session.collection)
    }
    rows = (
        (
            grant.role, grant.grantee.kind, names.get(grant.grantee.id, grant.grantee.id), source,
            grant.created, grant.granted_by_name or grant.granted_by,
        )
        for grant in grants
        for source in ["all" if grant.source is None else source_names.get(grant.source, grant.source)]
    )  # fmt: skip
    session.show_or_exit(
        grants,
        rows_table(("role", "kind", "to", "source", "since", "by"), rows),
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
    names = account_names(session)
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


GRANTS_COMMANDS: Final = {
    "list": Command(
        "access:AccessService.list_grants", "List the roles on the collection and its sources.",
        show=_show_grants, limit=100,
    ),
    "add": Command(
        "access:AccessService.grant", "Grant a role to a user or a group.",
        "{grantee.id} has the role {role}", arguments={"role": "ROLE"}, only="source", extra=Recipient,
        prepare=_to_recipient,
    ),
    "remove": Command(
        "access:AccessService.revoke", "Revoke the role of a user or a group.", arguments={}, only="source",
        extra=Recipient, prepare=_to_recipient, show=_show_revoked,
    ),
    "effective": Command(
        "access:AccessService.effective_roles", "List the roles of a user, and where each comes from.",
        _roles_table, extra=Everywhere, prepare=_set_collection, limit=100,
    ),
    "readers": Command(
        "access:AccessService.list_readers", "List the users who can read a document, and why.",
        _readers_table, limit=100,
    ),
    "audit": Command(
        "access:AccessService.list_audit",
        "List changes of accounts, queries as another user and reviews.\n\n"
        "Newest first. Changes of settings are among them.",
        only="limit", defaults={"limit": 20}, show=_show_audit,
    ),
}  # fmt: skip
