"""Sign-ins of browsers on the pages of an issuer, and their ends: OpenID Connect with code, PKCE and nonce.

The browser that begins one gets a secret in a cookie. State, nonce and code verifier are made of it, so that
nothing is stored for somebody who is not known yet, and no other browser can complete the sign-in. A browser
with several tabs has several secrets.
"""

import asyncio
import base64
import hmac
import logging
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final

from conspectus.access.sessions import Sessions
from conspectus.access.sign_ins import SignIns, describe_change, identity_id
from conspectus.access.token_claims import read_id_claims, read_logout_claims
from conspectus.access.tokens import hash_of
from conspectus.errors import InvalidToken
from conspectus.model.access import Person, Scope, Session, User
from conspectus.model.identities import LogoutClaims, SignInAttempt
from conspectus.ports import Clock
from conspectus.ports.accounts import Accounts
from conspectus.ports.identities import CodeFlow, TokenFault

CALLBACK_PATH: Final = "/sign-in/callback"
"""Where the issuer sends browsers back to, below the address of the server."""
SECRET: Final = re.compile(r"[\w-]{43}", re.ASCII)
MAX_CODE: Final = 4_096
"""Characters of a code. Those of some issuers are encrypted tokens."""

logger = logging.getLogger(__name__)


class BrowserSignIns:
    """Begins, completes and ends sign-ins of browsers, in any process of a store."""

    def __init__(
        self,
        sign_ins: SignIns,
        accounts: Accounts,
        clock: Clock,
        sessions: Sessions,
        make_flow: Callable[[], CodeFlow],
        *,
        choose_scopes: Callable[[User], Awaitable[Sequence[Scope]]],
    ) -> None:
        self._sign_ins = sign_ins
        self._accounts = accounts
        self._clock = clock
        self._sessions = sessions
        self._make_flow = make_flow
        self._choose_scopes = choose_scopes
        self._flow: CodeFlow | None = None

    async def begin(self) -> tuple[str, str]:
        """Return the address to which a browser is sent, and its secret. Raises InvalidToken."""
        secret = secrets.token_urlsafe(32)
        try:
            return await (await self._load_flow()).sign_in_address(attempt_of(secret)), secret
        except TokenFault as fault:
            raise _refuse("sign_in_refused", fault) from None

    async def complete(self, attempt_secrets: Sequence[str], answer: Mapping[str, str]) -> tuple[Person, str]:
        """Return the user whom the issuer names, and the token of a new session. Raises InvalidToken.

        `attempt_secrets` are those of the browser, and `answer` has the parameters with which the issuer sent
        it back.
        """
        try:
            return await self._complete(attempt_secrets, answer)
        except TokenFault as fault:
            raise _refuse("sign_in_refused", fault) from None

    async def sign_out_address(self, back: str) -> str:
        """Return the address that ends the session at the issuer; `back` if there is none."""
        return await (await self._load_flow()).sign_out_address(back) or back

    async def end_sessions(self, logout_token: str) -> None:
        """End the sessions that the issuer names in a logout token. Raises InvalidToken."""
        rules, verifier = self._sign_ins.rules, await self._sign_ins.prepare()
        try:
            token_claims = await verifier.verify(logout_token, "logout")
            claims = read_logout_claims(token_claims, rules, client=rules.client, now=self._clock())
        except TokenFault as fault:
            raise _refuse("logout_refused", fault) from None
        for session, user in await self._find_sessions(claims):
            change = describe_change(user, "end_session", f"logout at {rules.issuer}", self._clock())
            await self._accounts.end_session(session.id, replace(change, subject=session.id))

    async def find_problems(self) -> Sequence[str]:
        """Return a sentence for each problem of the issuer's configuration."""
        return await (await self._load_flow()).find_problems()

    async def close(self) -> None:
        """Release connections to the issuer."""
        if self._flow is not None:
            await self._flow.close()

    async def _load_flow(self) -> CodeFlow:
        if self._flow is None:
            self._flow = await asyncio.to_thread(self._make_flow)
        return self._flow

    async def _complete(
        self, attempt_secrets: Sequence[str], answer: Mapping[str, str]
    ) -> tuple[Person, str]:
        rules = self._sign_ins.rules
        attempt, code = check_answer(attempt_secrets, answer, rules.issuer)
        id_token = await (await self._load_flow()).exchange(code, attempt)
        verifier = await self._sign_ins.prepare()
        claims = read_id_claims(
            await verifier.verify(id_token, "id"),
            rules,
            client=rules.client,
            nonce=attempt.nonce,
            now=self._clock(),
        )
        person = await self._sign_ins.sign_in(claims)
        user = await self._accounts.user(person.id)
        if user is None:
            raise TokenFault("unknown_identity")
        person = replace(person, scopes=tuple(await self._choose_scopes(user)), expires=None)
        session, token = self._sessions.create(
            person,
            max_lifetime=timedelta(hours=rules.max_session_hours),
            issuer_session=claims.issuer_session,
        )
        detail = f"issuer {rules.issuer}; scopes {' '.join(person.scopes)}"
        change = describe_change(person, "sign_in", detail, self._clock())
        await self._accounts.add_session(session, hash_of(token), replace(change, subject=session.id))
        return person, token

    async def _find_sessions(self, claims: LogoutClaims) -> list[tuple[Session, User]]:
        """Return the sessions that a logout token is about, and that began before it was issued.

        So a token that is sent again ends no later session.
        """
        rules = self._sign_ins.rules
        identity = None
        if claims.subject is not None:
            identity = identity_id(rules.issuer, claims.subject, rules.subject_claim)
        end = claims.issued + timedelta(seconds=rules.clock_skew)
        sessions = await self._accounts.find_issuer_sessions(
            rules.issuer, identity=identity, issuer_session=claims.issuer_session
        )
        return [
            (session, user)
            for session, user in sessions
            if session.created <= end and is_named(session, claims)
        ]


def attempt_of(secret: str) -> SignInAttempt:
    """Return what a browser with that secret sends and gets back. None of it tells the secret."""
    return SignInAttempt(
        state=_derive(secret, "state"),
        nonce=_derive(secret, "nonce"),
        code_verifier=_derive(secret, "code_verifier"),
    )


def check_answer(
    attempt_secrets: Sequence[str], answer: Mapping[str, str], issuer: str
) -> tuple[SignInAttempt, str]:
    """Return the attempt that an answer is for, and the code that the issuer gave. Raises TokenFault."""
    attempts = [attempt_of(secret) for secret in attempt_secrets if SECRET.fullmatch(secret)]
    if not attempts:
        raise TokenFault("no_attempt")
    state = answer.get("state", "")
    attempt = next((attempt for attempt in attempts if has_state(attempt, state)), None)
    if attempt is None:
        raise TokenFault("state")
    if answer.get("iss", issuer) != issuer:
        raise TokenFault("issuer")
    if "error" in answer:
        raise TokenFault("refused_by_issuer", f"error={answer['error']!r:.100}")
    code = answer.get("code", "")
    if not 0 < len(code) <= MAX_CODE:
        raise TokenFault("no_code")
    return attempt, code


def has_state(attempt: SignInAttempt, state: str) -> bool:
    """Return whether an attempt began with that state, in the same time for every state."""
    answered, expected = (text.encode("utf-8", "surrogatepass") for text in (state, attempt.state))
    return hmac.compare_digest(answered, expected)


def is_named(session: Session, claims: LogoutClaims) -> bool:
    """Return whether a logout token of the user of a session is about the session.

    One whose session at the issuer is unknown ends with every logout of its user.
    """
    return claims.issuer_session is None or session.issuer_session in {None, claims.issuer_session}


def _derive(secret: str, purpose: str) -> str:
    digest = hmac.digest(secret.encode("utf-8", "surrogatepass"), purpose.encode("ascii"), "sha256")
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode("ascii")


def _refuse(event: str, fault: TokenFault) -> InvalidToken:
    """Log why something is refused, and return the error, which does not say it."""
    logger.warning(event + " reason=%(reason)s %(detail)s", {"reason": fault.code, "detail": fault.detail})
    return InvalidToken()
