"""Memberships by groups of a directory, read when it is due or by command.

A directory names people by a subject, never by a name or an e-mail: who has no identity of it joins nothing.
Nothing changes unless all mapped groups were read completely.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Final

from conspectus.access.sign_ins import identity_id
from conspectus.deferred import dataclass
from conspectus.engine.context import EngineContext
from conspectus.engine.owner_account import ensure_owner_account
from conspectus.errors import ConspectusError, InvalidInput
from conspectus.model.access import DIRECTORY, AccountChange
from conspectus.model.identities import DIRECTORY_ISSUER, DirectoryMembership, GroupClaim, GroupSyncReport
from conspectus.model.ids import GroupId, UserId

MAX_UNMAPPED: Final = 100
GROUP_SYNC_LOCK: Final = "group sync"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Plan:
    """The memberships that a directory makes, and the subjects that are nobody here."""

    memberships: frozenset[DirectoryMembership]
    unmapped: Sequence[str]


class GroupSync:
    """Makes people members of the groups here that groups of a directory are mapped to."""

    def __init__(self, context: EngineContext) -> None:
        self._context = context.as_person(DIRECTORY)
        self._parts = context.parts
        self._accounts = context.parts.accounts

    async def sync(self, *, dry_run: bool = False) -> GroupSyncReport:
        """Read the mapped groups, and change memberships.

        Raises InvalidInput, FetchFailed or MissingExtra.
        """
        if not self._parts.settings.ldap_url:
            raise InvalidInput("ldap_url", "is not set: it names the directory whose groups are read")
        group_claims = await self._accounts.group_claims(DIRECTORY_ISSUER)
        directory = await self._context.core.group_directory()
        groups = sorted({group_claim.claim for group_claim in group_claims})
        subjects = await directory.read_members(groups)
        plan = await self._plan(group_claims, subjects)
        present = set(await self._accounts.list_directory_members(DIRECTORY_ISSUER))
        memberships = {(membership.group, membership.user): membership for membership in plan.memberships}
        taken = await self._find_other_members(memberships.keys() - present)
        joined = [membership for pair, membership in memberships.items() if pair not in present | taken]
        left = [DirectoryMembership(group, user, "") for group, user in present - memberships.keys()]
        if not dry_run and (joined or left):
            await ensure_owner_account(self._context)
            await self._accounts.change_directory_members(
                DIRECTORY_ISSUER,
                joined=await self._describe("add_member", joined),
                left=await self._describe("remove_member", left),
            )
        return GroupSyncReport(
            groups=len(groups),
            members=len(frozenset().union(*(members or () for members in subjects.values()))),
            joined=len(joined),
            left=len(left),
            unmapped=tuple(plan.unmapped[:MAX_UNMAPPED]),
            gone=tuple(group for group in groups if subjects[group] is None),
        )

    async def sync_when_due(self) -> None:
        """Read the mapped groups in the background. A failure is logged, and changes nothing."""
        if not await self._accounts.group_claims(DIRECTORY_ISSUER):
            return
        try:
            report = await self.sync()
        except ConspectusError as fault:
            logger.warning("group_sync_failed %(reason)s", {"reason": fault})
            raise
        logger.info(
            "group_sync groups=%(groups)d joined=%(joined)d left=%(left)d",
            {"groups": report.groups, "joined": report.joined, "left": report.left},
        )

    async def _plan(
        self, group_claims: Sequence[GroupClaim], subjects: Mapping[str, frozenset[str] | None]
    ) -> _Plan:
        """Return the memberships of the people whose identity is mapped."""
        all_subjects: frozenset[str] = frozenset().union(*(members or () for members in subjects.values()))
        by_id = {identity.id: identity for identity in await self._accounts.identities()}
        people = {
            subject: identity
            for subject in all_subjects
            for id in self._identity_ids(subject)
            if (identity := by_id.get(id)) is not None
        }
        memberships = frozenset(
            DirectoryMembership(group_claim.group, people[subject].user, people[subject].id)
            for group_claim in group_claims
            for subject in subjects[group_claim.claim] or ()
            if subject in people
        )
        return _Plan(memberships, sorted(all_subjects - people.keys()))

    def _identity_ids(self, subject: str) -> Sequence[str]:
        """Return the identities that a subject may be; the last one that is mapped decides."""
        settings, of_directory = self._parts.settings, identity_id(DIRECTORY_ISSUER, subject)
        if settings.ldap_subject_issuer == "ldap":
            return (of_directory,)
        return identity_id(settings.oidc_issuer, subject, settings.oidc_subject_claim), of_directory

    async def _find_other_members(
        self, memberships: "set[tuple[GroupId, UserId]]"
    ) -> set[tuple[GroupId, UserId]]:
        """Return those that are members already, by people or by others."""
        groups = {group for group, _ in memberships}
        members = {(group, user.id) for group in groups for user in await self._accounts.members(group)}
        return members & memberships

    async def _describe(
        self, action: str, memberships: Sequence[DirectoryMembership]
    ) -> Mapping[DirectoryMembership, AccountChange]:
        """Return changes of memberships for the audit log."""
        users = {user.id: user.name for user in await self._accounts.users()}
        groups = {group.id: group.name for group in await self._accounts.groups()}
        return {
            membership: self._context.change(
                action,
                membership.user,
                users.get(membership.user, ""),
                detail=f"group {groups.get(membership.group, membership.group)}; by LDAP",
            )
            for membership in memberships
        }
