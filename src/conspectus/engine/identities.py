"""Identities of users at an issuer of tokens, and the claims that make their bearers members of groups."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Final

from conspectus.access.policy import require_owner, require_owner_in_person
from conspectus.access.sign_ins import identity_id
from conspectus.access.token_claims import MAX_CLAIM, MAX_SUBJECT
from conspectus.engine.group_sync import GROUP_SYNC_LOCK, GroupSync
from conspectus.engine.group_sync_worker import GroupSyncWorker
from conspectus.engine.owner_account import ensure_owner_account
from conspectus.engine.service import Service
from conspectus.errors import InvalidInput, NotFound
from conspectus.model.annotations import Example, Length
from conspectus.model.identities import DIRECTORY_ISSUER, GroupClaim, GroupSyncReport, Identity, RefusedSignIn
from conspectus.model.parameters import GroupClaimIdentifier, GroupName, IdentityIdentifier, UserName
from conspectus.text.hashing import stable_id
from conspectus.text.urls import is_tamper_proof

MAX_ISSUER: Final = 2_000
ISSUER_HELP: Final = "Issuer of the tokens, or `ldap`, the directory; none: the issuer of the settings."


class IdentityService(Service):
    """Identities of users at an issuer of tokens, and the claims that lead to groups."""

    async def list_identities(
        self,
        user: Annotated[str | None, "Name or id of a user; none: all.", Example("ann")] = None,
    ) -> Sequence[Identity]:
        """List the identities with which users sign in, oldest first. Only the owner account may do this."""
        require_owner(self._person, "see identities")
        if user is None:
            return await self._parts.accounts.identities()
        return await self._parts.accounts.identities((await self._directory.user(user)).id)

    async def map_identity(
        self,
        user: UserName,
        subject: Annotated[
            str,
            Length(1, MAX_SUBJECT),
            "Subject of the user's tokens, or in the directory.",
            Example("248289761001"),
        ],
        *,
        issuer: Annotated[str | None, Length(1, MAX_ISSUER), ISSUER_HELP] = None,
    ) -> Identity:
        """Map the subject of an issuer's tokens to a user, who can then sign in with them.

        A name or e-mail in a token never leads to an account. Only the owner account may do this. Raises
        NotFound, InvalidInput, or Conflict if the subject or the user has another identity of that issuer.
        """
        require_owner_in_person(self._person, "map identities")
        await ensure_owner_account(self._context)
        account, named_issuer = await self._directory.user(user), self._issuer(issuer)
        settings = self._parts.settings
        claim = settings.oidc_subject_claim if named_issuer == settings.oidc_issuer else "sub"
        detail = f"issuer {named_issuer}"
        change = self._context.change("map_identity", account.id, account.name, detail=detail)
        identity = Identity(
            id=identity_id(named_issuer, subject, claim),
            issuer=named_issuer,
            subject=subject,
            user=account.id,
            created=change.created,
        )
        await self._parts.accounts.add_identity(identity, change)
        return replace(identity, mapped_by=change.actor, mapped_by_name=change.actor_name)

    async def unmap_identity(self, identity: IdentityIdentifier) -> None:
        """Delete an identity: its next token is refused, and memberships by its claims end.

        Only the owner account may do this. Raises NotFound.
        """
        require_owner_in_person(self._person, "unmap identities")
        signed_in = await self._parts.accounts.find_sign_in(identity)
        if signed_in is None:
            raise NotFound("identity", identity)
        user, detail = signed_in.user, f"issuer {signed_in.identity.issuer}"
        change = self._context.change("unmap_identity", user.id, user.name, detail=detail)
        await self._parts.accounts.remove_identity(signed_in.identity, change)

    async def list_refused_sign_ins(self) -> Sequence[RefusedSignIn]:
        """List subjects whose valid tokens were refused, because no user is mapped to them, newest first.

        At most 1,000 of the last 30 days. Only the owner account may do this.
        """
        require_owner(self._person, "see refused sign-ins")
        return await self._parts.accounts.list_refused_sign_ins()

    async def list_group_claims(self) -> Sequence[GroupClaim]:
        """List the claims that make their bearers members of groups. Only the owner account may do this."""
        require_owner(self._person, "see claims of groups")
        return await self._parts.accounts.group_claims()

    async def map_group_claim(
        self,
        claim: Annotated[
            str, Length(1, MAX_CLAIM), "Group as the tokens name it.", Example("context-operators")
        ],
        group: GroupName,
        *,
        issuer: Annotated[str | None, Length(1, MAX_ISSUER), ISSUER_HELP] = None,
    ) -> GroupClaim:
        """Make users members of a group as long as their newest token names that claim.

        Only the owner account may do this. Raises NotFound, InvalidInput, or Conflict if it is so already.
        """
        require_owner_in_person(self._person, "map claims of groups")
        self._context.screen_value("group_claims.claim", claim)
        joined, named_issuer = await self._directory.group(group), self._issuer(issuer)
        group_claim = GroupClaim(
            id=stable_id("group claim", named_issuer, claim, joined.id),
            issuer=named_issuer,
            claim=claim,
            group=joined.id,
            created=self._parts.clock(),
        )
        detail = f"issuer {named_issuer}"
        change = self._context.change("map_group_claim", joined.id, joined.name, detail=detail)
        await self._parts.accounts.add_group_claim(group_claim, change)
        return group_claim

    async def sync_groups(
        self,
        *,
        dry_run: Annotated[bool, "Only count what would change.", Example(True)] = False,
    ) -> GroupSyncReport:
        """Read the groups of the LDAP directory that are mapped, and change memberships as they say.

        Nothing changes unless all of them were read completely. Only the owner account may do this. Raises
        InvalidInput without a directory in the settings, FetchFailed, or MissingExtra.
        """
        require_owner_in_person(self._person, "read groups of the directory")
        return await GroupSync(self._context).sync(dry_run=dry_run)

    async def start(self) -> None:
        """Read the mapped groups of the directory in the background, every `ldap_interval_hours`.

        One of the processes that have the store open does so.
        """
        settings = self._parts.settings
        if settings.ldap_url and settings.ldap_interval_hours:
            self._core.ensure_running(
                GroupSyncWorker,
                lambda: GroupSyncWorker(
                    GroupSync(self._context).sync_when_due,
                    turn=partial(self._parts.turns, GROUP_SYNC_LOCK),
                    pause=3_600.0 * settings.ldap_interval_hours,
                ),
            )

    async def unmap_group_claim(self, group_claim: GroupClaimIdentifier) -> None:
        """Delete the claim of a group: memberships by it end at once.

        Only the owner account may do this. Raises NotFound.
        """
        require_owner_in_person(self._person, "unmap claims of groups")
        stored = {stored.id: stored for stored in await self._parts.accounts.group_claims()}
        if group_claim not in stored:
            raise NotFound("group claim", group_claim)
        left = await self._directory.group(stored[group_claim].group)
        detail = f"issuer {stored[group_claim].issuer}"
        change = self._context.change("unmap_group_claim", left.id, left.name, detail=detail)
        await self._parts.accounts.remove_group_claim(stored[group_claim], change)

    def _issuer(self, issuer: str | None) -> str:
        """Return the issuer that is meant. Raises InvalidInput."""
        settings = self._parts.settings
        if issuer == DIRECTORY_ISSUER:
            if not settings.ldap_url:
                raise InvalidInput("issuer", "ldap is the directory of the setting ldap_url, which is empty")
            return DIRECTORY_ISSUER
        named_issuer = issuer or settings.oidc_issuer
        if not is_tamper_proof(named_issuer):
            raise InvalidInput("issuer", "must be ldap or an address with https; give it, or set oidc_issuer")
        return named_issuer
