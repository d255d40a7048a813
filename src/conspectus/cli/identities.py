"""identities: who signs in with tokens of an issuer, and into which groups."""

from collections.abc import Sequence
from typing import Final

from conspectus.cli.command import Arguments, Command
from conspectus.cli.output import rows_table
from conspectus.cli.people import account_names
from conspectus.cli.session import Session
from conspectus.model.identities import GroupClaim, Identity, RefusedSignIn


def _show_identities(session: Session, identities: Sequence[Identity], _: Arguments) -> None:
    names = account_names(session)
    columns = ("id", "user", "subject", "issuer", "created")
    rows = (
        (
            identity.id,
            names.get(identity.user, identity.user),
            identity.subject,
            identity.issuer,
            identity.created,
        )
        for identity in identities
    )
    session.show_or_exit(identities, rows_table(columns, rows), "no identities")


def _show_refused_sign_ins(session: Session, refused: Sequence[RefusedSignIn], _: Arguments) -> None:
    rows = ((subject.subject, subject.issuer, subject.first, subject.last) for subject in refused)
    table = rows_table(("subject", "issuer", "first", "last"), rows)
    session.show_or_exit(refused, table, "no subject was refused")


def _show_group_claims(session: Session, group_claims: Sequence[GroupClaim], _: Arguments) -> None:
    names = account_names(session)
    columns = ("id", "claim", "group", "issuer", "created")
    rows = (
        (
            group_claim.id,
            group_claim.claim,
            names.get(group_claim.group, group_claim.group),
            group_claim.issuer,
            group_claim.created,
        )
        for group_claim in group_claims
    )
    session.show_or_exit(group_claims, rows_table(columns, rows), "no claims of groups")


IDENTITIES_COMMANDS: Final = {
    "list": Command(
        "identities:IdentityService.list_identities", "List the identities with which users sign in.",
        show=_show_identities, limit=100,
    ),
    "refused": Command(
        "identities:IdentityService.list_refused_sign_ins", "List subjects that nobody is mapped to.",
        show=_show_refused_sign_ins, limit=100,
    ),
    "map": Command(
        "identities:IdentityService.map_identity", "Let a user sign in with tokens of a subject.",
        "{user} signs in as {subject}",
    ),
    "unmap": Command(
        "identities:IdentityService.unmap_identity", "Delete an identity; its tokens are refused.",
        "deleted the identity {identity}",
    ),
    "groups": Command(
        "identities:IdentityService.list_group_claims", "List the claims that lead to groups.",
        show=_show_group_claims, limit=100,
    ),
    "map-group": Command(
        "identities:IdentityService.map_group_claim", "Make bearers of a claim members of a group.",
        "{claim} leads to {group}",
    ),
    "unmap-group": Command(
        "identities:IdentityService.unmap_group_claim", "Delete the claim of a group; memberships by it end.",
        "deleted the claim {group_claim}",
    ),
}  # fmt: skip
