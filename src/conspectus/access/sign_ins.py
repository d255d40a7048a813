"""Sign-ins with tokens of an issuer: whose account a token is about, and what its bearer may do."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from uuid import uuid4

from conspectus.access.account_names import account_name
from conspectus.access.token_claims import TokenRules, read_claims
from conspectus.errors import Conflict, InvalidInput, InvalidToken
from conspectus.model.access import AccountChange, Person, User
from conspectus.model.identities import Identity, RefusedSignIn, SignedIn, TokenClaims
from conspectus.model.ids import GroupId, UserId
from conspectus.ports import Clock
from conspectus.ports.accounts import Accounts
from conspectus.ports.identities import TokenFault, TokenVerifier
from conspectus.text.hashing import stable_id

DIGITS_OF_NEW_NAME = 8
MAX_NAME_PART = 80
MIN_REFUSAL_INTERVAL = timedelta(minutes=1)
MAX_NOTED_REFUSALS = 1_000

logger = logging.getLogger(__name__)


def identity_id(issuer: str, subject: str, claim: str = "sub") -> str:
    """Return the id of a person at an issuer. The same text in two claims is not the same person."""
    claims = () if claim == "sub" else (claim,)
    return stable_id("identity", issuer, subject, *claims)


class SignIns:
    """Authenticates the bearers of tokens, in any process of a store."""

    def __init__(
        self,
        accounts: Accounts,
        clock: Clock,
        rules: TokenRules,
        make_verifier: Callable[[], TokenVerifier],
        *,
        is_free_name: Callable[[str], Awaitable[bool]],
    ) -> None:
        self.rules = rules
        self._accounts = accounts
        self._clock = clock
        self._make_verifier = make_verifier
        self._is_free_name = is_free_name
        self._verifier: TokenVerifier | None = None
        self._last_refusals: dict[str, datetime] = {}

    async def prepare(self) -> TokenVerifier:
        """Load what checks signatures. Raises MissingExtra."""
        if self._verifier is None:
            self._verifier = await asyncio.to_thread(self._make_verifier)
        return self._verifier

    async def authenticate(self, token: str) -> Person:
        """Return the bearer of a token with its scopes, in the groups that it names. Raises InvalidToken."""
        verifier = await self.prepare()
        try:
            claims = read_claims(await verifier.verify(token), self.rules, self._clock())
            return await self.sign_in(claims)
        except TokenFault as fault:
            logger.warning(
                "token_refused reason=%(reason)s %(detail)s", {"reason": fault.code, "detail": fault.detail}
            )
            raise InvalidToken from None

    async def find_problems(self) -> Sequence[str]:
        """Return a sentence for each problem of the issuer's configuration."""
        return await (await self.prepare()).find_problems()

    async def close(self) -> None:
        """Release connections to the issuer."""
        if self._verifier is not None:
            await self._verifier.close()

    async def sign_in(self, claims: TokenClaims) -> Person:
        """Return the user whom the claims of a valid token are about, and update its groups.

        Raises TokenFault for an unknown identity, unless the settings allow a new user, and for a disabled
        user.
        """
        id = identity_id(claims.issuer, claims.subject, self.rules.subject_claim)
        signed_in = await self._accounts.find_sign_in(id)
        if signed_in is None:
            signed_in = await self._create_user(id, claims)
        user = signed_in.user
        if user.disabled:
            raise TokenFault("disabled_user")
        await self._update_groups(signed_in, claims)
        return Person(
            name=user.name,
            owner=user.owner,
            id=user.id,
            scopes=claims.scopes,
            identity=id,
            expires=claims.expires,
        )

    async def _create_user(self, id: str, claims: TokenClaims) -> SignedIn:
        """Return the new user of an unknown identity. Raises TokenFault unless the settings allow it.

        A name never leads to an account: if it is taken, the new user has another one.
        """
        if not self.rules.creates_users:
            await self._note_refusal(id, claims)
            raise TokenFault("unknown_identity", f"subject={claims.subject!r}")
        now = self._clock()
        for name in list_new_names(id, claims.name):
            if not await self._is_free_name(name):
                continue
            user = User(UserId(str(uuid4())), name, now)
            identity = Identity(id, claims.issuer, claims.subject, user.id, now)
            change = describe_change(user, "create_user", f"first sign-in of {claims.issuer}", now)
            with suppress(Conflict):
                await self._accounts.add_identity(identity, change, new_user=user)
            signed_in = await self._accounts.find_sign_in(id)
            if signed_in is not None:
                return signed_in
        raise TokenFault("no_free_name")

    async def _note_refusal(self, id: str, claims: TokenClaims) -> None:
        """List a subject that nobody is mapped to for the administrator, once a minute."""
        now = self._clock()
        last = self._last_refusals.get(id)
        if last is not None and now - last < MIN_REFUSAL_INTERVAL:
            return
        if len(self._last_refusals) >= MAX_NOTED_REFUSALS:
            self._last_refusals.clear()
        self._last_refusals[id] = now
        await self._accounts.note_refused_sign_in(
            RefusedSignIn(id, claims.issuer, claims.subject, first=now, last=now)
        )

    async def _update_groups(self, signed_in: SignedIn, claims: TokenClaims) -> None:
        """Make the user a member of the groups that claims of the token have, and of no other by claims."""
        identity, memberships = signed_in.identity, signed_in.memberships
        if identity.last_issued is not None and claims.issued < identity.last_issued:
            return
        group_claims = await self._accounts.group_claims(claims.issuer)
        present = {group for group, issuer in memberships.items() if issuer == claims.issuer}
        claimed = present
        if claims.groups is not None:
            claimed = {mapped.group for mapped in group_claims if mapped.claim in claims.groups}
        joined, left = claimed - memberships.keys(), present - claimed
        if identity.last_issued is not None and not joined and not left:
            return
        names = {group.id: group.name for group in await self._accounts.groups()}
        now, user, origin = self._clock(), signed_in.user, f"claim of {claims.issuer}"

        def describe(action: str, group: GroupId) -> AccountChange:
            return describe_change(user, action, f"group {names.get(group, group)}; {origin}", now)

        await self._accounts.note_sign_in(
            identity,
            claims.issued,
            first=describe_change(user, "first_sign_in", f"issuer {claims.issuer}", now),
            joined={group: describe("add_member", group) for group in joined},
            left={group: describe("remove_member", group) for group in left},
        )


def list_new_names(id: str, claimed: str) -> list[str]:
    """Return names for a new account of that id: the claimed one if it can be a name, and a rare one."""
    digits = id.replace("-", "")[:DIGITS_OF_NEW_NAME]
    try:
        return [account_name(claimed), account_name(f"{claimed[:MAX_NAME_PART]}-{digits}")]
    except InvalidInput:
        return [f"user-{digits}", f"user-{id.replace('-', '')}"]


def describe_change(user: User | Person, action: str, detail: str, at: datetime) -> AccountChange:
    """Return a change of a user that the issuer causes."""
    return AccountChange(
        id=str(uuid4()),
        actor=user.id,
        actor_name=user.name,
        key=None,
        action=action,
        subject=user.id,
        subject_name=user.name,
        collection=None,
        detail=detail,
        created=at,
    )
