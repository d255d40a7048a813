"""Sign-ins with tokens of a real issuer on the loopback: which are refused, who signs in, in which groups."""

import asyncio
import hashlib
import hmac
import json
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from tests.contracts.accounts_contract import ANNA
from tests.support.hand_clock import HandClock
from tests.support.in_memory_accounts import MemoryAccounts, MemoryCatalog
from tests.support.samples import NOON
from tests.support.token_issuer import (
    AUDIENCE,
    ED25519_KEY,
    OTHER_RSA_KEY,
    P256_KEY,
    P384_KEY,
    RSA_KEY,
    SHORT_RSA_KEY,
    TokenIssuer,
    public_jwk,
    public_pem,
    segment,
)

from conspectus.access.sign_ins import SignIns, identity_id
from conspectus.access.token_claims import TokenRules, rules_of
from conspectus.errors import InvalidToken
from conspectus.model.access import Group, User
from conspectus.model.identities import GroupClaim, Identity
from conspectus.model.ids import GroupId, UserId
from conspectus.providers.issuer_keys import IssuerKeys
from conspectus.providers.jwt_verifier import MAX_TOKEN_LENGTH, JwtVerifier
from conspectus.settings import Settings
from conspectus.sources.web.fetcher import WebFetcher
from conspectus.sources.web.http_client import FetchLimits

SUBJECT = "subject-of-ann"
STAFF, LEADS = GroupId("staff"), GroupId("leads")
HMAC_SECRET = b"s" * 64


@dataclass
class Desk:
    """A store with Anna, who is known to the issuer, and sign-ins into it."""

    issuer: TokenIssuer
    accounts: MemoryAccounts
    clock: HandClock
    rules: TokenRules
    sign_ins: SignIns

    @property
    def identity(self) -> Identity:
        return Identity(identity_id(self.issuer.url, SUBJECT), self.issuer.url, SUBJECT, ANNA, NOON)

    async def groups_of_anna(self) -> set[str]:
        groups = await self.accounts.groups()
        members = {group.id: await self.accounts.members(group.id) for group in groups}
        return {group for group, users in members.items() if ANNA in {user.id for user in users}}

    async def list_changes(self) -> list[tuple[str, str]]:
        entries = (await self.accounts.audit(limit=99)).entries
        return [(entry.action, entry.detail) for entry in entries]

    def open(self, **changes: Any) -> SignIns:
        """Sign-ins by other rules."""
        keys = self.sign_ins
        rules = replace(self.rules, **changes)
        return SignIns(self.accounts, self.clock, rules, keys._make_verifier, is_free_name=is_free)


async def is_free(name: str) -> bool:
    return name != "owner"


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    accounts, clock = MemoryAccounts(MemoryCatalog()), HandClock()
    await accounts.add_user(User(ANNA, "anna", NOON))
    for group in (STAFF, LEADS):
        await accounts.add_group(Group(group, f"the {group}", NOON))
    async with TokenIssuer() as issuer:
        rules = rules_of(Settings(oidc_issuer=issuer.url, oidc_audience=f"{AUDIENCE}, {AUDIENCE}/mcp"))
        assert rules is not None

        def make_verifier() -> JwtVerifier:
            fetcher = WebFetcher(FetchLimits(1_000_000, 0, 2.0, ("127.0.0.1",)))
            return JwtVerifier(IssuerKeys(issuer.url, fetcher, max_stale_seconds=60.0), rules.algorithms)

        sign_ins = SignIns(accounts, clock, rules, make_verifier, is_free_name=is_free)
        desk = Desk(issuer, accounts, clock, rules, sign_ins)
        await accounts.add_identity(desk.identity)
        yield desk
        await sign_ins.close()


Forge = Callable[[TokenIssuer], str]


def claims(**changes: Any) -> Forge:
    """A token with other claims, signed well."""
    return lambda issuer: issuer.token(
        **{name: value(issuer) if callable(value) else value for name, value in changes.items()}
    )


def header(**changes: Any) -> Forge:
    """A token with another header, signed well."""
    return lambda issuer: issuer.sign(issuer.claims(), **changes)


def raw_header(content: object) -> Forge:
    """A token whose header is all that matters."""
    return lambda _issuer: f"{segment(content)}.e30.e30"


def raw_claims(text: bytes) -> Forge:
    """A token of these bytes, signed well."""
    return lambda issuer: issuer.sign(text)


def seconds(offset: int) -> int:
    return int(NOON.timestamp()) + offset


def unsigned(issuer: TokenIssuer, algorithm: str = "none") -> str:
    return f"{segment({'alg': algorithm, 'kid': 'rsa'})}.{segment(issuer.claims())}."


def hmac_with_public_key(issuer: TokenIssuer) -> str:
    """Signed with what everybody knows, as if the public key were a secret."""
    signed = f"{segment({'alg': 'HS256', 'kid': 'rsa'})}.{segment(issuer.claims())}"
    return f"{signed}.{segment(hmac.new(public_pem(RSA_KEY), signed.encode(), hashlib.sha256).digest())}"


def detached(issuer: TokenIssuer) -> str:
    head, _, signature = issuer.sign(issuer.claims(), b64=False, crit=["b64"]).split(".")
    return f"{head}..{signature}"


def swapped_claims(issuer: TokenIssuer) -> str:
    """The claims of another, with the signature of a good token."""
    head, _, signature = issuer.token().split(".")
    return f"{head}.{segment(issuer.claims(sub='somebody-else'))}.{signature}"


def twice(issuer: TokenIssuer) -> str:
    good = json.dumps(issuer.claims(aud="https://other.example.org"))
    return issuer.sign(f'{good[:-1]}, "aud": "{AUDIENCE}"}}'.encode())


BAD_TOKENS: dict[str, tuple[str, Forge]] = {
    "no signature": ("algorithm", unsigned),
    "header that is not base64": ("malformed", lambda _issuer: "a.b.c"),
    "no signature, in capitals": ("algorithm", lambda issuer: unsigned(issuer, "NONE")),
    "HMAC with the public key": ("algorithm", hmac_with_public_key),
    "HMAC with a secret": ("algorithm", header(key=HMAC_SECRET, algorithm="HS256")),
    "an algorithm that is not allowed": ("algorithm", header(algorithm="RS512")),
    "an algorithm that is a list": ("algorithm", raw_header({'alg': ['RS256'], 'kid': 'rsa'})),
    "no key id": ("no_key_id", header(kid=None)),
    "an empty key id": ("no_key_id", header(kid="")),
    "an unknown key id": ("unknown_key", header(kid="another")),
    "the id of another key": ("key_algorithm", header(kid="p256")),
    "another key with a known id": ("signature", header(key=OTHER_RSA_KEY)),
    "the algorithm of another key": ("key_algorithm", header(key=RSA_KEY, algorithm="PS256", kid="rsa")),
    "a curve that is not allowed": ("algorithm", header(key=P384_KEY, algorithm="ES384", kid="p256")),
    "a key of its own by address": ("signature", header(key=OTHER_RSA_KEY, jku="https://evil.example/keys")),
    "a key of its own inside": ("signature", header(key=OTHER_RSA_KEY, jwk={"kty": "RSA"})),
    "a certificate of its own": ("signature", header(key=OTHER_RSA_KEY, x5u="https://evil", x5c=["eA"])),
    "claims of another token": ("signature", swapped_claims),
    "an empty signature": ("signature", lambda issuer: issuer.token().rpartition(".")[0] + "."),
    "a critical header": ("critical_header", header(crit=["exp"])),
    "a critical header that is empty": ("critical_header", header(crit=[])),
    "a detached payload": ("critical_header", detached),
    "b64 that is true": ("critical_header", header(b64=True)),
    "a token for logouts": ("token_type", header(typ="logout+jwt")),
    "a token bound to a proof": ("token_type", header(typ="dpop+jwt")),
    "a type that is a number": ("token_type", raw_header({'alg': 'RS256', 'typ': 1, 'kid': 'rsa'})),
    "foreign audience": ("audience", claims(aud="https://other.example.org")),
    "an empty audience": ("audience", claims(aud="")),
    "an empty list of audiences": ("audience", claims(aud=[])),
    "no audience": ("audience", claims(aud=None)),
    "foreign audiences": ("audience", claims(aud=["a", "b"])),
    "an audience with a slash more": ("audience", claims(aud=f"{AUDIENCE}/")),
    "an audience in an object": ("audience", claims(aud={AUDIENCE: True})),
    "an audience that is a number": ("audience", claims(aud=[AUDIENCE, 1])),
    "a foreign issuer": ("issuer", claims(iss="https://evil.example.org")),
    "an issuer with a slash more": ("issuer", claims(iss=lambda issuer: f"{issuer.url}/")),
    "no issuer": ("issuer", claims(iss=None)),
    "an issuer in a list": ("issuer", claims(iss=lambda issuer: [issuer.url])),
    "no end": ("claim_exp", claims(exp=None)),
    "an end in text": ("claim_exp", claims(exp=str(seconds(600)))),
    "an end that is true": ("claim_exp", claims(exp=True)),
    "an end after all years": ("claim_exp", claims(exp=10**30)),
    "ended a minute and a second ago": ("expired", claims(exp=seconds(-61))),
    "ended a minute ago": ("expired", claims(exp=seconds(-60))),
    "not yet valid for 61 seconds": ("not_yet_valid", claims(nbf=seconds(61))),
    "issued in 61 seconds": ("not_yet_valid", claims(iat=seconds(61))),
    "not before in text": ("claim_nbf", claims(nbf="now")),
    "no time of issue": ("claim_iat", claims(iat=None)),
    "a negative time of issue": ("claim_iat", claims(iat=-1)),
    "bound to a key": ("bound_to_a_key", claims(cnf={"jkt": "x"})),
    "no subject": ("subject", claims(sub=None)),
    "an empty subject": ("subject", claims(sub="")),
    "a long subject": ("subject", claims(sub="s" * 256)),
    "a subject of two lines": ("subject", claims(sub="a\nb")),
    "a subject that is a number": ("subject", claims(sub=7)),
    "no scope": ("no_scope", claims(scope=None)),
    "scopes for others": ("no_scope", claims(scope="openid email readers")),
    "scopes that are a number": ("claim_scope", claims(scope=1)),
    "scopes of another separator": ("no_scope", claims(scope="read\twrite")),
    "groups in an object": ("claim_groups", claims(groups={"name": "x"})),
    "groups that are numbers": ("claim_groups", claims(groups=[1])),
    "more groups than anybody has": ("claim_groups", claims(groups=["g"] * 1_001)),
    "an unknown person": ("unknown_identity", claims(sub="subject-of-ben")),
    "a name for a subject": ("unknown_identity", claims(sub="anna", email="anna@example.org")),
    "an audience twice": ("payload", twice),
    "claims that are a list": ("payload", raw_claims(b"[]")),
    "claims that are no JSON": ("payload", raw_claims(b"{'iss': 1}")),
    "claims that are not a number": ("payload", raw_claims(b'{"exp": NaN}')),
    "claims in no encoding": ("payload", raw_claims(b"\xff\xfe")),
    "claims as deep as they go": ("payload", raw_claims(b"[" * 5_000 + b"]" * 5_000)),
    "a number without an end": ("payload", raw_claims(b'{"exp": ' + b"9" * 6_000 + b"}")),
    "a token in a token": ("payload", lambda issuer: issuer.sign(issuer.token().encode())),
    "one character too long": ("too_long", lambda issuer: "a" * (MAX_TOKEN_LENGTH - 2) + "..b"),
    "a megabyte": ("too_long", claims(padding="x" * 1_000_000)),
    "an encrypted token": ("malformed", lambda issuer: f"{segment({'alg': 'dir'})}..YQ.YQ.YQ"),
    "two parts": ("malformed", lambda issuer: issuer.token().rpartition(".")[0]),
    "nothing but dots": ("malformed", lambda issuer: ".."),
    "a header that is no JSON": ("malformed", raw_header(b'{')),
    "a header that is a list": ("malformed", raw_header([])),
    "a header as deep as it goes": ("malformed", raw_header(b'[' * 9_000)),
    "letters of another alphabet": ("malformed", lambda issuer: issuer.token().replace(".", ".é", 1)),
    "characters of the other base64": ("malformed", lambda issuer: "+/+/" + issuer.token()),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_TOKENS)
async def test_a_bad_token_is_refused_without_a_reason(
    name: str, desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    """The client is told one sentence; the log has the reason, and nothing of the token."""
    code, forge = BAD_TOKENS[name]
    token = forge(desk.issuer)
    with pytest.raises(InvalidToken) as refusal, caplog.at_level(logging.WARNING):
        await desk.sign_ins.authenticate(token)
    assert (str(refusal.value), vars(refusal.value)) == ("the token is not valid here", {})
    [record] = [record for record in caplog.records if record.message.startswith("token_refused")]
    assert f"reason={code} " in record.message
    assert len(record.message) < 200
    assert await desk.list_changes() == []


GOOD_TOKENS: dict[str, Forge] = {
    "the usual one": claims(),
    "one of several audiences": claims(aud=["https://other.example.org", f"{AUDIENCE}/mcp"]),
    "ended 59 seconds ago": claims(exp=seconds(-59), iat=seconds(-600)),
    "valid in 60 seconds": claims(nbf=seconds(60), iat=seconds(60)),
    "an end with a fraction": claims(exp=seconds(600) + 0.5),
    "scopes in a list": claims(scope=None, scp=["read", "write"]),
    "scopes as Entra has them": claims(scope=None, scp="read write"),
    "no type": header(typ=None),
    "the type JWT": header(typ="JWT"),
    "the long type": header(typ="application/AT+JWT"),
    "an RSA-PSS signature": header(algorithm="PS256", kid="pss"),
    "a signature with P-256": header(key=P256_KEY, algorithm="ES256", kid="p256"),
    "a signature with Ed25519": header(key=ED25519_KEY, algorithm="EdDSA", kid="ed25519"),
    "an address of keys that nobody reads": header(jku="https://evil.example/keys", x5t="abc"),
    "unknown claims": claims(groups=None, acr="1", nested={"a": [1, {"b": None}]}),
}


@pytest.mark.parametrize("name", GOOD_TOKENS)
async def test_a_good_token_signs_in_who_it_is_about(name: str, desk: Desk) -> None:
    person = await desk.sign_ins.authenticate(GOOD_TOKENS[name](desk.issuer))
    assert (person.id, person.name, person.scopes) == (ANNA, "anna", ("read", "write"))
    assert (person.key, person.session, person.credential) == (None, None, desk.identity.id)
    assert {request.path for request in desk.issuer.server.requests} <= {
        "/.well-known/openid-configuration",
        "/keys",
    }


async def test_a_refused_subject_is_listed_once_a_minute(desk: Desk) -> None:
    token = desk.issuer.token(sub="subject-of-ben", exp=int(NOON.timestamp()) + 9_000)
    for seconds in (0, 30, 61):
        desk.clock.at = NOON + timedelta(seconds=seconds)
        with pytest.raises(InvalidToken):
            await desk.sign_ins.authenticate(token)
    [refused] = await desk.accounts.list_refused_sign_ins()
    assert (refused.subject, refused.issuer) == ("subject-of-ben", desk.issuer.url)
    assert (refused.first, refused.last) == (NOON, NOON + timedelta(seconds=61))


async def test_another_claim_for_subjects_makes_nobody_somebody_else(desk: Desk) -> None:
    """Ben's `oid` is the text of Ann's `sub`: with the setting `oid`, he is unknown, and so is she."""
    by_oid = desk.open(subject_claim="oid")
    for claims in ({"sub": "subject-of-ben", "oid": SUBJECT}, {}, {"oid": ""}, {"oid": 7}):
        with pytest.raises(InvalidToken):
            await by_oid.authenticate(desk.issuer.token(**claims))
    ben = User(UserId("ben"), "ben", NOON)
    id = identity_id(desk.issuer.url, SUBJECT, "oid")
    assert id != desk.identity.id
    await desk.accounts.add_identity(Identity(id, desk.issuer.url, SUBJECT, ben.id, NOON), new_user=ben)
    assert (await by_oid.authenticate(desk.issuer.token(sub="any", oid=SUBJECT))).id == "ben"
    assert (await desk.sign_ins.authenticate(desk.issuer.token())).id == ANNA


async def test_keys_that_are_unfit_verify_nothing(desk: Desk) -> None:
    """Short ones, private ones, those for encryption, symmetric ones, broken ones, and ids that two share."""
    unfit: dict[str, Any] = {
        "short": public_jwk(SHORT_RSA_KEY, "short", "RS256"),
        "encrypts": public_jwk(RSA_KEY, "encrypts", "RS256", use="enc"),
        "wraps": public_jwk(RSA_KEY, "wraps", "RS256", key_ops=["wrapKey"]),
        "private": public_jwk(RSA_KEY, "private", "RS256", d="AQAB"),
        "symmetric": {"kty": "oct", "kid": "symmetric", "k": "c2VjcmV0", "alg": "RS256"},
        "broken": {"kty": "RSA", "kid": "broken", "n": "!", "e": 1},
        "empty": {"kty": "RSA", "kid": "empty"},
        "number": 7,
    }
    shared = [public_jwk(RSA_KEY, "shared", "RS256"), public_jwk(OTHER_RSA_KEY, "shared", "RS256")]
    desk.issuer.keys += [*unfit.values(), *shared]
    for key_id in (*unfit, "shared"):
        signing_key = SHORT_RSA_KEY if key_id == "short" else RSA_KEY
        with pytest.raises(InvalidToken):
            await desk.sign_ins.authenticate(
                desk.issuer.sign(desk.issuer.claims(), kid=key_id, key=signing_key)
            )
    assert (await desk.sign_ins.authenticate(desk.issuer.token())).id == ANNA


async def test_a_disabled_user_is_refused_at_once(desk: Desk) -> None:
    token = desk.issuer.token()
    await desk.sign_ins.authenticate(token)
    await desk.accounts.set_user_disabled(ANNA, disabled=True)
    with pytest.raises(InvalidToken):
        await desk.sign_ins.authenticate(token)
    await desk.accounts.set_user_disabled(ANNA, disabled=False)
    await desk.accounts.remove_identity(desk.identity)
    with pytest.raises(InvalidToken):
        await desk.sign_ins.authenticate(token)


async def test_scopes_of_tokens_are_those_of_the_setting(desk: Desk) -> None:
    scopes = frozenset({("Context.All", "write"), ("Context.All", "admin"), ("*", "read")})
    sign_ins = desk.open(scopes=scopes)
    assert (await sign_ins.authenticate(desk.issuer.token(scope=None))).scopes == ("read",)
    person = await sign_ins.authenticate(desk.issuer.token(scope="read Context.All"))
    assert person.scopes == ("read", "write", "admin")
    await sign_ins.close()


async def test_the_first_sign_in_makes_a_user_if_the_setting_says_so(desk: Desk) -> None:
    """Several requests at once make one. A name that is taken leads to no account."""
    sign_ins = desk.open(creates_users=True)
    tokens = [desk.issuer.token(sub="ben", preferred_username="ben")] * 5
    persons = await asyncio.gather(*map(sign_ins.authenticate, tokens))
    assert len({person.id for person in persons}) == 1
    assert persons[0].name == "ben"
    thief = await sign_ins.authenticate(desk.issuer.token(sub="thief", preferred_username="anna"))
    assert thief.id != ANNA and thief.name.startswith("anna-")
    odd_names = ["", "owner", "a/b", "local", "x" * 101, ["list"], 7, "two\nlines", None]
    for number, name in enumerate(odd_names):
        person = await sign_ins.authenticate(desk.issuer.token(sub=f"odd-{number}", preferred_username=name))
        assert person.name.startswith(("user-", "owner-"))
    changes = await desk.list_changes()
    users = 2 + len(odd_names)
    assert changes.count(("create_user", f"first sign-in of {desk.issuer.url}")) == users
    assert changes.count(("first_sign_in", f"issuer {desk.issuer.url}")) == users
    await sign_ins.close()


async def map_groups(desk: Desk, **claims_by_group: str) -> None:
    for group, claim in claims_by_group.items():
        await desk.accounts.add_group_claim(
            GroupClaim(f"{claim} of {group}", desk.issuer.url, claim, GroupId(group), NOON)
        )


async def test_claims_join_mapped_groups_and_end_with_the_next_token(desk: Desk) -> None:
    await map_groups(desk, staff="employees", leads="managers")
    later = int((NOON + timedelta(seconds=5)).timestamp())
    both = desk.issuer.token(groups=["employees", "managers", "unmapped", "the leads"])
    await desk.sign_ins.authenticate(both)
    assert await desk.groups_of_anna() == {STAFF, LEADS}
    await desk.sign_ins.authenticate(desk.issuer.token(groups="employees", iat=later))
    assert await desk.groups_of_anna() == {STAFF}
    await desk.sign_ins.authenticate(both)
    assert await desk.groups_of_anna() == {STAFF}, "an older token gives nothing back"
    await desk.sign_ins.authenticate(desk.issuer.token(groups=None, iat=later))
    assert await desk.groups_of_anna() == set()
    origin = f"claim of {desk.issuer.url}"
    changes = await desk.list_changes()
    assert sorted(changes) == sorted([
        ("first_sign_in", f"issuer {desk.issuer.url}"),
        ("add_member", f"group the staff; {origin}"),
        ("add_member", f"group the leads; {origin}"),
        ("remove_member", f"group the leads; {origin}"),
        ("remove_member", f"group the staff; {origin}"),
    ])  # fmt: skip


async def test_no_token_ends_a_membership_that_people_made(desk: Desk) -> None:
    await map_groups(desk, staff="employees")
    await desk.accounts.join(STAFF, ANNA)
    for groups in (["employees"], None):
        await desk.sign_ins.authenticate(desk.issuer.token(groups=groups))
        assert await desk.groups_of_anna() == {STAFF}


async def test_groups_of_another_issuer_stay_away(desk: Desk) -> None:
    foreign = GroupClaim("foreign", "https://other.example.org", "employees", STAFF, NOON)
    await desk.accounts.add_group_claim(foreign)
    await desk.sign_ins.authenticate(desk.issuer.token(groups=["employees"]))
    assert await desk.groups_of_anna() == set()


async def test_a_name_in_a_token_changes_nothing_for_a_known_person(desk: Desk) -> None:
    person = await desk.sign_ins.authenticate(desk.issuer.token(preferred_username="root"))
    assert person.name == "anna"
    assert [user.id for user in await desk.accounts.users()] == [ANNA]
    assert UserId("root") not in {user.id for user in await desk.accounts.users()}
