"""Sign-ins of browsers at a real issuer on the loopback: which are refused, and what ends the others."""

import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from tests.contracts.accounts_contract import ANNA
from tests.support.hand_clock import HandClock
from tests.support.in_memory_accounts import MemoryAccounts, MemoryCatalog
from tests.support.samples import NOON
from tests.support.sign_in_issuer import CLIENT, EVENT, SECRET, SignInIssuer
from tests.support.token_issuer import AUDIENCE, OTHER_RSA_KEY, segment
from tests.support.web_server import Answer, redirect

from conspectus.access.browser_sign_ins import MAX_CODE, BrowserSignIns, attempt_of
from conspectus.access.sessions import Sessions
from conspectus.access.sign_ins import SignIns, identity_id
from conspectus.access.token_claims import rules_of
from conspectus.errors import InvalidToken, Unauthenticated
from conspectus.model.access import Scope, User
from conspectus.model.identities import Identity
from conspectus.providers.code_flow import AuthorizationCodeFlow, Client
from conspectus.providers.issuer_keys import IssuerKeys
from conspectus.providers.jwt_verifier import JwtVerifier
from conspectus.settings import Settings
from conspectus.sources.web.fetcher import WebFetcher
from conspectus.sources.web.http_client import FetchLimits

SUBJECT = "subject-of-ann"
CALLBACK = "https://context.example.org/sign-in/callback"


@dataclass
class Desk:
    """A store with Anna, who is known to the issuer, and sign-ins of browsers into it."""

    issuer: SignInIssuer
    accounts: MemoryAccounts
    clock: HandClock
    sessions: Sessions
    sign_ins: BrowserSignIns

    async def sign_in(self) -> str:
        """The token of a session of a good sign-in."""
        address, secret = await self.sign_ins.begin()
        _, token = await self.sign_ins.complete([secret], self.issuer.answer(address))
        return token

    async def is_open(self, token: str) -> bool:
        try:
            await self.sessions.authenticate(token)
        except Unauthenticated:
            return False
        return True

    async def list_actions(self) -> list[str]:
        return [entry.action for entry in (await self.accounts.audit(limit=99)).entries]


async def is_free(name: str) -> bool:
    return name != "owner"


async def choose_scopes(_user: User) -> Sequence[Scope]:
    return ("read", "write")


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    accounts, clock = MemoryAccounts(MemoryCatalog()), HandClock()
    await accounts.add_user(User(ANNA, "anna", NOON))
    async with SignInIssuer(now=clock) as issuer:
        rules = rules_of(Settings(oidc_issuer=issuer.url, oidc_audience=AUDIENCE, oidc_client_id=CLIENT))
        assert rules is not None

        def make_fetcher() -> WebFetcher:
            return WebFetcher(FetchLimits(1_000_000, 0, 2.0, ("127.0.0.1",)))

        def make_verifier() -> JwtVerifier:
            keys = IssuerKeys(issuer.url, make_fetcher(), max_stale_seconds=60.0)
            return JwtVerifier(keys, rules.algorithms)

        def make_flow() -> AuthorizationCodeFlow:
            client = Client(CLIENT, SECRET, CALLBACK, "openid profile")
            return AuthorizationCodeFlow(issuer.url, client, make_fetcher())

        sessions = Sessions(accounts, clock, lifetime=timedelta(days=7), max_idle=timedelta(days=7))
        sign_ins = SignIns(accounts, clock, rules, make_verifier, is_free_name=is_free)
        browsers = BrowserSignIns(sign_ins, accounts, clock, sessions, make_flow, choose_scopes=choose_scopes)
        await accounts.add_identity(
            Identity(identity_id(issuer.url, SUBJECT), issuer.url, SUBJECT, ANNA, NOON)
        )
        yield Desk(issuer, accounts, clock, sessions, browsers)
        await browsers.close()
        await sign_ins.close()


async def test_a_browser_comes_back_as_the_user_whom_the_issuer_names(desk: Desk) -> None:
    address, secret = await desk.sign_ins.begin()
    person, token = await desk.sign_ins.complete([secret], desk.issuer.answer(address))
    assert (person.id, person.scopes, person.expires) == (ANNA, ("read", "write"), None)
    signed_in = await desk.sessions.authenticate(token)
    assert signed_in.identity == identity_id(desk.issuer.url, SUBJECT)
    [session] = await desk.accounts.sessions()
    assert (session.issuer_session, session.expires) == ("first", NOON + timedelta(hours=12))
    assert sorted(await desk.list_actions()) == ["first_sign_in", "sign_in"]
    assert secret not in address
    attempt = attempt_of(secret)
    assert attempt.code_verifier not in address
    assert len({attempt.state, attempt.nonce, attempt.code_verifier}) == 3


async def test_a_public_client_sends_its_id_and_no_secret(desk: Desk) -> None:
    client = Client(CLIENT, "", CALLBACK, "openid")
    fetcher = WebFetcher(FetchLimits(1_000_000, 0, 2.0, ("127.0.0.1",)))
    flow = AuthorizationCodeFlow(desk.issuer.url, client, fetcher)
    with pytest.raises(Exception, match="client"):
        await flow.exchange("any", attempt_of("s" * 43))
    request = desk.issuer.server.requests[-1]
    assert b"client_id=console" in request.body
    assert b"client_secret" not in request.body
    assert "authorization" not in request.headers
    await flow.close()


async def test_an_issuer_that_takes_secrets_in_forms_alone_gets_them_there(desk: Desk) -> None:
    desk.issuer.metadata["token_endpoint_auth_methods_supported"] = ["client_secret_post"]
    with pytest.raises(InvalidToken):
        await desk.sign_in()
    assert b"client_secret=a+secret%3A+with+%2B+and+%25" in desk.issuer.server.requests[-1].body


async def test_an_id_token_that_says_nothing_of_groups_ends_no_membership(desk: Desk) -> None:
    """Some issuers name groups in access tokens alone."""
    await desk.sign_in()
    signed_in = await desk.accounts.find_sign_in(identity_id(desk.issuer.url, SUBJECT))
    assert signed_in is not None
    assert signed_in.identity.last_issued == NOON


Answers = Callable[[dict[str, str]], Mapping[str, str]]
BAD_ANSWERS: dict[str, tuple[str, Answers]] = {
    "no state": ("state", lambda answer: {"code": answer["code"]}),
    "empty state": ("state", lambda answer: {**answer, "state": ""}),
    "state of another browser": ("state", lambda answer: {**answer, "state": attempt_of("o" * 43).state}),
    "state with a lone surrogate": ("state", lambda answer: {**answer, "state": "\ud800"}),
    "foreign issuer": ("issuer", lambda answer: {**answer, "iss": "https://evil.example.org"}),
    "issuer with a slash": ("issuer", lambda answer: {**answer, "iss": f"{answer['iss']}/"}),
    "refused by the user": (
        "refused_by_issuer",
        lambda answer: {"state": answer["state"], "error": "access_denied"},
    ),
    "error beside a code": ("refused_by_issuer", lambda answer: {**answer, "error": "x\nlog: forged"}),
    "no code": ("no_code", lambda answer: {"state": answer["state"]}),
    "empty code": ("no_code", lambda answer: {**answer, "code": ""}),
    "endless code": ("no_code", lambda answer: {**answer, "code": "c" * (MAX_CODE + 1)}),
    "code of nobody": ("code", lambda answer: {**answer, "code": "guessed"}),
}


@pytest.mark.parametrize("name", BAD_ANSWERS)
async def test_a_bad_answer_begins_no_session(
    name: str, desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    reason, change = BAD_ANSWERS[name]
    address, secret = await desk.sign_ins.begin()
    with caplog.at_level(logging.WARNING), pytest.raises(InvalidToken) as caught:
        await desk.sign_ins.complete([secret], change(desk.issuer.answer(address)))
    assert caplog.messages[-1].startswith(f"sign_in_refused reason={reason}")
    assert "\n" not in caplog.messages[-1]
    assert str(caught.value) == "the token is not valid here"
    assert await desk.accounts.sessions() == []


@pytest.mark.parametrize("secret", [None, "", "s" * 42, "s" * 44, "ä" * 43, "s" * 42 + "\n"])
async def test_a_browser_that_began_nothing_completes_nothing(
    secret: str | None, desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    """Login CSRF: the answer is good, but for the browser of somebody else."""
    address, _ = await desk.sign_ins.begin()
    with pytest.raises(InvalidToken):
        await desk.sign_ins.complete([] if secret is None else [secret], desk.issuer.answer(address))
    assert "reason=no_attempt" in caplog.messages[-1]


async def test_a_code_works_once_and_for_its_browser_alone(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    address, secret = await desk.sign_ins.begin()
    answer = desk.issuer.answer(address)
    await desk.sign_ins.complete([secret], answer)
    with pytest.raises(InvalidToken):
        await desk.sign_ins.complete([secret], answer)
    assert "reason=code status=400 error='invalid_grant'" in caplog.messages[-1]
    address, _ = await desk.sign_ins.begin()
    stolen = desk.issuer.answer(address)
    _, thief = await desk.sign_ins.begin()
    with pytest.raises(InvalidToken):
        await desk.sign_ins.complete([thief], {**stolen, "state": attempt_of(thief).state})
    assert "reason=code" in caplog.messages[-1]
    assert len(await desk.accounts.sessions()) == 1


Forge = Callable[[Desk], None]


def id_claims(**changes: Any) -> Forge:
    return lambda desk: desk.issuer.id_claims.update(changes)


def at(offset: int) -> int:
    return int(NOON.timestamp()) + offset


def signed_with_another_key(desk: Desk) -> None:
    desk.issuer.forge = lambda claims: desk.issuer.sign(claims, key=OTHER_RSA_KEY, typ="JWT")


def unsigned(desk: Desk) -> None:
    desk.issuer.forge = lambda claims: f"{segment({'alg': 'none', 'kid': 'rsa'})}.{segment(claims)}."


def typed(kind: str) -> Forge:
    def forge(desk: Desk) -> None:
        desk.issuer.forge = lambda claims: desk.issuer.sign(claims, typ=kind)

    return forge


def answers(answer: Answer) -> Forge:
    def forge(desk: Desk) -> None:
        desk.issuer.token_answer = answer

    return forge


def leave(desk: Desk) -> None:
    desk.issuer.server.answers["/token"] = Answer(b"", 503)


JSON = "application/json"
BAD_ID_TOKENS: dict[str, tuple[str, Forge]] = {
    "no nonce": ("nonce", id_claims(nonce=None)),
    "replayed nonce": ("nonce", id_claims(nonce=attempt_of("o" * 43).nonce)),
    "nonce of another type": ("nonce", id_claims(nonce=["n"])),
    "foreign issuer": ("issuer", id_claims(iss="https://evil.example.org")),
    "audience of the API": ("audience", id_claims(aud=AUDIENCE)),
    "no audience": ("audience", id_claims(aud=None)),
    "empty audience": ("audience", id_claims(aud="")),
    "empty audiences": ("audience", id_claims(aud=[])),
    "several audiences without a party": ("authorized_party", id_claims(aud=[CLIENT, "other"])),
    "for another party": ("authorized_party", id_claims(aud=[CLIENT, "other"], azp="other")),
    "one audience, another party": ("authorized_party", id_claims(azp="other")),
    "expired": ("expired", id_claims(exp=at(-61))),
    "from the future": ("not_yet_valid", id_claims(iat=at(61))),
    "no expiry": ("claim_exp", id_claims(exp=None)),
    "no subject": ("subject", id_claims(sub=None)),
    "subject of another type": ("subject", id_claims(sub=7)),
    "logout token": ("token_type", id_claims(events={EVENT: {}})),
    "session of another type": ("claim_sid", id_claims(sid=7)),
    "unknown subject": ("unknown_identity", id_claims(sub="stranger")),
    "signed with another key": ("signature", signed_with_another_key),
    "unsigned": ("algorithm", unsigned),
    "access token": ("token_type", typed("at+jwt")),
    "logout token by its header": ("token_type", typed("logout+jwt")),
    "no token": ("no_id_token", answers(Answer(b"{}", type=JSON))),
    "token of another type": ("no_id_token", answers(Answer(b'{"id_token": 1}', type=JSON))),
    "no JSON": ("token_answer", answers(Answer(b"<html>", type=JSON))),
    "a list": ("token_answer", answers(Answer(b"[]", type=JSON))),
    "an error as 200": ("no_id_token", answers(Answer(b'{"error": "invalid_grant"}', type=JSON))),
    "a redirect elsewhere": ("issuer_unavailable", answers(redirect("https://evil.example.org"))),
    "an endless answer": ("issuer_unavailable", answers(Answer(bytes(1_000_001), type=JSON))),
    "issuer away": ("token_answer", leave),
}


@pytest.mark.parametrize("name", BAD_ID_TOKENS)
async def test_a_bad_id_token_begins_no_session(
    name: str, desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    reason, forge = BAD_ID_TOKENS[name]
    address, secret = await desk.sign_ins.begin()
    forge(desk)
    with caplog.at_level(logging.WARNING), pytest.raises(InvalidToken) as caught:
        await desk.sign_ins.complete([secret], desk.issuer.answer(address))
    assert caplog.messages[-1].startswith(f"sign_in_refused reason={reason}")
    assert str(caught.value) == "the token is not valid here"
    assert await desk.accounts.sessions() == []


async def test_a_disabled_user_does_not_sign_in(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    token = await desk.sign_in()
    await desk.accounts.set_user_disabled(ANNA, disabled=True)
    assert not await desk.is_open(token)
    with pytest.raises(InvalidToken):
        await desk.sign_in()
    assert "reason=disabled_user" in caplog.messages[-1]


async def test_a_session_ends_with_its_identity(desk: Desk) -> None:
    token = await desk.sign_in()
    [identity] = await desk.accounts.identities()
    await desk.accounts.remove_identity(identity)
    assert not await desk.is_open(token)


async def test_an_issuer_that_is_away_is_asked_rarely_and_named_in_the_log(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    desk.issuer.failure = Answer(b"", 503)
    for _ in range(3):
        with pytest.raises(InvalidToken):
            await desk.sign_ins.begin()
    assert desk.issuer.fetches == 1
    assert "sign_in_refused reason=issuer_unavailable" in caplog.messages[0]
    assert await desk.sign_ins.sign_out_address("https://context.example.org/") == (
        "https://context.example.org/"
    )


@pytest.mark.parametrize(
    ("metadata", "problem"),
    [
        ({"authorization_endpoint": None}, "no `authorization_endpoint` with https"),
        ({"token_endpoint": "http://login.example.org/token"}, "no `token_endpoint` with https"),
        ({"code_challenge_methods_supported": ["plain"]}, "the issuer lacks PKCE with S256"),
    ],
)
async def test_a_wrong_configuration_is_said_in_a_sentence(
    metadata: dict[str, Any], problem: str, desk: Desk
) -> None:
    assert await desk.sign_ins.find_problems() == []
    desk.issuer.metadata |= metadata
    [sentence] = await desk.sign_ins.find_problems()
    assert sentence.startswith("sign-in in the console does not work: ")
    assert problem in sentence


async def test_an_issuer_without_usable_metadata_is_reported_by_others(desk: Desk) -> None:
    desk.issuer.metadata |= {"issuer": "https://evil.example.org"}
    assert await desk.sign_ins.find_problems() == []


@pytest.mark.parametrize("client", [Client(CLIENT, "new", "", ""), Client("renamed", SECRET, "", "")])
async def test_a_client_that_the_issuer_refuses_is_named_in_the_check_and_in_the_log(
    client: Client, desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    desk.issuer.client = client
    [sentence] = await desk.sign_ins.find_problems()
    assert "(invalid_client); correct CONSPECTUS_OIDC_CLIENT_ID and" in sentence
    assert SECRET not in sentence
    address, secret = await desk.sign_ins.begin()
    with pytest.raises(InvalidToken):
        await desk.sign_ins.complete([secret], desk.issuer.answer(address))
    assert "reason=client status=401 error='invalid_client'" in caplog.messages[-1]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [(Answer(b"<html>", 502), "is no JSON object"), (Answer(b"", 200), "is no JSON object")],
)
async def test_a_token_endpoint_that_does_not_work_is_named(answer: Answer, problem: str, desk: Desk) -> None:
    desk.issuer.token_answer = answer
    [sentence] = await desk.sign_ins.find_problems()
    assert problem in sentence


@pytest.mark.parametrize(
    ("claims", "ends"),
    [
        ({}, True),
        ({"sid": "first"}, True),
        ({"sub": None, "sid": "first"}, True),
        ({"sid": "other"}, False),
        ({"sub": None, "sid": "other"}, False),
        ({"sub": "somebody-else"}, False),
        ({"sub": "somebody-else", "sid": "first"}, False),
    ],
)
async def test_a_logout_at_the_issuer_ends_the_sessions_it_names(
    claims: dict[str, Any], ends: bool, desk: Desk
) -> None:
    token = await desk.sign_in()
    await desk.sign_ins.end_sessions(desk.issuer.logout_token(**claims))
    assert await desk.is_open(token) is not ends
    assert ("end_session" in await desk.list_actions()) == ends


async def test_a_logout_token_that_is_sent_again_ends_no_later_session(desk: Desk) -> None:
    logout_token = desk.issuer.logout_token()
    desk.clock.at += timedelta(seconds=61)
    token = await desk.sign_in()
    await desk.sign_ins.end_sessions(logout_token)
    assert await desk.is_open(token)


async def test_a_session_without_a_sid_ends_with_any_logout_of_its_user(desk: Desk) -> None:
    desk.issuer.id_claims["sid"] = None
    token = await desk.sign_in()
    await desk.sign_ins.end_sessions(desk.issuer.logout_token(sub=None, sid="first"))
    assert await desk.is_open(token)
    await desk.sign_ins.end_sessions(desk.issuer.logout_token(sid="first"))
    assert not await desk.is_open(token)


BAD_LOGOUTS: dict[str, tuple[str, Callable[[SignInIssuer], str]]] = {
    "no token": ("malformed", lambda issuer: ""),
    "no event": ("claim_events", lambda issuer: issuer.logout_token(events=None)),
    "another event": ("claim_events", lambda issuer: issuer.logout_token(events={"other": {}})),
    "an event that is no object": ("claim_events", lambda issuer: issuer.logout_token(events={EVENT: 1})),
    "events in a list": ("claim_events", lambda issuer: issuer.logout_token(events=[EVENT])),
    "a nonce": ("nonce", lambda issuer: issuer.logout_token(nonce="n")),
    "no id": ("claim_jti", lambda issuer: issuer.logout_token(jti=None)),
    "neither subject nor session": ("subject", lambda issuer: issuer.logout_token(sub=None)),
    "foreign issuer": ("issuer", lambda issuer: issuer.logout_token(iss="https://evil.example.org")),
    "for another client": ("audience", lambda issuer: issuer.logout_token(aud="other")),
    "for the API": ("audience", lambda issuer: issuer.logout_token(aud=AUDIENCE)),
    "expired": ("expired", lambda issuer: issuer.logout_token(exp=at(-61))),
    "no expiry": ("claim_exp", lambda issuer: issuer.logout_token(exp=None)),
    "no issue time": ("claim_iat", lambda issuer: issuer.logout_token(iat=None)),
    "unknown key": ("unknown_key", lambda issuer: issuer.logout_token(key="other")),
    "an access token": ("token_type", lambda issuer: issuer.sign(issuer.claims(), typ="at+jwt")),
    "an ID token": ("claim_events", lambda issuer: issuer.sign(issuer.claims(aud=CLIENT), typ="JWT")),
}


@pytest.mark.parametrize("name", BAD_LOGOUTS)
async def test_a_bad_logout_token_ends_nothing(
    name: str, desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    reason, forge = BAD_LOGOUTS[name]
    token = await desk.sign_in()
    with caplog.at_level(logging.WARNING), pytest.raises(InvalidToken) as caught:
        await desk.sign_ins.end_sessions(forge(desk.issuer))
    assert caplog.messages[-1].startswith(f"logout_refused reason={reason}")
    assert str(caught.value) == "the token is not valid here"
    assert await desk.is_open(token)
