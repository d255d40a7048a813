"""What the claims of a signed token allow here (RFC 7519, RFC 9068)."""

import hmac
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput
from conspectus.model.access import SCOPES, Scope
from conspectus.model.identities import LogoutClaims, TokenClaims
from conspectus.ports.identities import TokenFault
from conspectus.settings import Settings
from conspectus.text.urls import is_tamper_proof

ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""The algorithms that a setting may allow: those with a public key."""
MAX_CLOCK_SKEW: Final = 60
"""Seconds that the clocks of the issuer and of this server may differ."""
MAX_SUBJECT: Final = 255
MAX_GROUPS: Final = 1_000
MAX_CLAIM: Final = 1_000
"""Characters of a group's name, and of a person's."""
LAST_SECOND: Final = 253_402_300_799
"""The last second of the year 9999."""
LOGOUT_EVENT: Final = "http://schemas.openid.net/event/backchannel-logout"
"""The member of `events` that makes a token a logout token."""
ANY_TOKEN: Final = "*"
"""In `oidc_scopes`: the scope that every valid token has."""


@dataclass(frozen=True, slots=True)
class TokenRules:
    """What a token must say to be valid here, and what its claims mean."""

    issuer: str
    audiences: frozenset[str]
    algorithms: frozenset[str]
    scopes: frozenset[tuple[str, Scope]]
    subject_claim: str
    groups_claim: str
    name_claim: str
    creates_users: bool
    clock_skew: int
    client: str
    """Id of the console at the issuer; empty: nobody signs in there."""
    max_session_hours: int

    @property
    def scopes_supported(self) -> list[str]:
        """The scopes that a client may ask the issuer for."""
        return sorted({name for name, _ in self.scopes if name != ANY_TOKEN})


def rules_of(settings: Settings) -> TokenRules | None:
    """Return the rules for tokens; None if sign-in with tokens is off. Raises InvalidInput."""
    if not settings.oidc_issuer:
        return None
    if not is_tamper_proof(settings.oidc_issuer):
        raise InvalidInput("oidc_issuer", "must be an address with https, or with http on this machine")
    algorithms = _split(settings.oidc_algorithms)
    if not algorithms or not algorithms <= set(ALGORITHMS):
        raise InvalidInput("oidc_algorithms", f"must be some of {', '.join(ALGORITHMS)}")
    if settings.oidc_clock_skew_seconds > MAX_CLOCK_SKEW:
        raise InvalidInput("oidc_clock_skew_seconds", f"must be at most {MAX_CLOCK_SKEW}")
    return TokenRules(
        issuer=settings.oidc_issuer,
        audiences=_split(settings.oidc_audience),
        algorithms=algorithms,
        scopes=parse_scopes(settings.oidc_scopes),
        subject_claim=settings.oidc_subject_claim,
        groups_claim=settings.oidc_groups_claim,
        name_claim=settings.oidc_name_claim,
        creates_users=settings.oidc_create_users == "on",
        clock_skew=settings.oidc_clock_skew_seconds,
        client=settings.oidc_client_id,
        max_session_hours=settings.oidc_session_hours,
    )


def parse_scopes(setting: str) -> frozenset[tuple[str, Scope]]:
    """Return pairs of a scope of tokens and the scope that it gives here. Raises InvalidInput."""
    scopes: set[tuple[str, Scope]] = set()
    for pair in _split(setting):
        name, _, meaning = map(str.strip, pair.rpartition("="))
        scope = next((scope for scope in SCOPES if scope == meaning), None)
        if scope is None or not name:
            raise InvalidInput("oidc_scopes", f"{pair!r} is not SCOPE=RIGHT with {', '.join(SCOPES)}")
        scopes.add((name, scope))
    if not scopes:
        raise InvalidInput(
            "oidc_scopes", "names no scope, so no token would be valid; write pairs such as Context.Read=read"
        )
    return frozenset(scopes)


def read_claims(claims: Mapping[str, Any], rules: TokenRules, now: datetime) -> TokenClaims:
    """Return what the claims of a signed access token say. Raises TokenFault unless it is valid here."""
    issued, expires = _check_claims(claims, rules, rules.audiences, now)
    if "events" in claims:
        raise TokenFault("token_type")
    if "cnf" in claims:
        raise TokenFault("bound_to_a_key")
    return TokenClaims(
        issuer=rules.issuer,
        subject=_read_subject(claims, rules),
        name=_read_name(claims.get(rules.name_claim)),
        scopes=_read_scopes(claims, rules),
        groups=_read_groups(claims, rules) or frozenset(),
        issued=issued,
        expires=expires,
    )


def read_id_claims(
    claims: Mapping[str, Any], rules: TokenRules, *, client: str, nonce: str, now: datetime
) -> TokenClaims:
    """Return what the claims of a signed ID token say, for the client and the nonce of a sign-in.

    Raises TokenFault unless it is valid here (OpenID Connect Core, 3.1.3.7).
    """
    issued, expires = _check_claims(claims, rules, frozenset({client}), now)
    if "events" in claims:
        raise TokenFault("token_type")
    is_for_others = _read_texts(claims.get("aud"), "audience") != [client]
    if claims.get("azp", None if is_for_others else client) != client:
        raise TokenFault("authorized_party")
    sent_nonce = claims.get("nonce")
    if not isinstance(sent_nonce, str) or not hmac.compare_digest(sent_nonce.encode(), nonce.encode()):
        raise TokenFault("nonce")
    return TokenClaims(
        issuer=rules.issuer,
        subject=_read_subject(claims, rules),
        name=_read_name(claims.get(rules.name_claim)),
        scopes=(),
        groups=_read_groups(claims, rules),
        issued=issued,
        expires=expires,
        issuer_session=_read_session(claims),
    )


def read_logout_claims(
    claims: Mapping[str, Any], rules: TokenRules, *, client: str, now: datetime
) -> LogoutClaims:
    """Return what the claims of a signed logout token say (OpenID Connect Back-Channel Logout, 2.6).

    Raises TokenFault unless it is valid here.
    """
    issued, _ = _check_claims(claims, rules, frozenset({client}), now)
    events = claims.get("events")
    if not isinstance(events, dict) or not isinstance(events.get(LOGOUT_EVENT), dict):
        raise TokenFault("claim_events")
    if "nonce" in claims:
        raise TokenFault("nonce")
    if not isinstance(claims.get("jti"), str):
        raise TokenFault("claim_jti")
    subject = _read_subject(claims, rules) if rules.subject_claim in claims else None
    issuer_session = _read_session(claims)
    if subject is None and issuer_session is None:
        raise TokenFault("subject")
    return LogoutClaims(subject, issuer_session, issued)


def _check_claims(
    claims: Mapping[str, Any], rules: TokenRules, audiences: frozenset[str], now: datetime
) -> tuple[datetime, datetime]:
    """Return when a token was issued and when it expires. Raises TokenFault unless it is valid."""
    if claims.get("iss") != rules.issuer:
        raise TokenFault("issuer")
    if audiences.isdisjoint(_read_texts(claims.get("aud"), "audience")):
        raise TokenFault("audience")
    expires, issued = _read_instant(claims, "exp"), _read_instant(claims, "iat")
    not_before = _read_instant(claims, "nbf") if "nbf" in claims else issued
    if now.timestamp() >= expires + rules.clock_skew:
        raise TokenFault("expired")
    if max(issued, not_before) > now.timestamp() + rules.clock_skew:
        raise TokenFault("not_yet_valid")
    return datetime.fromtimestamp(issued, UTC), datetime.fromtimestamp(expires, UTC)


def _split(setting: str) -> frozenset[str]:
    return frozenset(filter(None, map(str.strip, setting.split(","))))


def _read_instant(claims: Mapping[str, Any], name: str) -> float:
    """Return a claim in seconds since 1970. Raises TokenFault."""
    seconds = claims.get(name)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise TokenFault(f"claim_{name}")
    if not 0 <= seconds <= LAST_SECOND:
        raise TokenFault(f"claim_{name}")
    return float(seconds)


def _read_texts(claim: object, code: str) -> list[str]:
    """Return the texts of a claim that is one text or a list of them. Raises TokenFault."""
    texts = [claim] if isinstance(claim, str) else claim
    if not isinstance(texts, list) or len(texts) > MAX_GROUPS:
        raise TokenFault(code)
    if not all(isinstance(text, str) and len(text) <= MAX_CLAIM for text in texts):
        raise TokenFault(code)
    return texts


def _read_scopes(claims: Mapping[str, Any], rules: TokenRules) -> tuple[Scope, ...]:
    """Return what the token may be used for: its `scope`, or `scp` as some issuers call it."""
    named = claims.get("scope", claims.get("scp", ""))
    texts = _read_texts(named, "claim_scope")
    names = {ANY_TOKEN, *(name for text in texts for name in text.split(" "))}
    granted = {scope for name, scope in rules.scopes if name in names}
    if not granted:
        raise TokenFault("no_scope")
    return tuple(scope for scope in SCOPES if scope in granted)


def _read_groups(claims: Mapping[str, Any], rules: TokenRules) -> frozenset[str] | None:
    """Return the groups that a token names; None if it says nothing of groups. Raises TokenFault."""
    claim = claims.get(rules.groups_claim) if rules.groups_claim else None
    return None if claim is None else frozenset(_read_texts(claim, "claim_groups"))


def _read_subject(claims: Mapping[str, Any], rules: TokenRules) -> str:
    """Return whom a token is about. Raises TokenFault."""
    subject = claims.get(rules.subject_claim)
    if not isinstance(subject, str) or not 0 < len(subject) <= MAX_SUBJECT or not subject.isprintable():
        raise TokenFault("subject")
    return subject


def _read_session(claims: Mapping[str, Any]) -> str | None:
    """Return the session at the issuer that a token names. Raises TokenFault."""
    session = claims.get("sid")
    if session is not None and (not isinstance(session, str) or not 0 < len(session) <= MAX_SUBJECT):
        raise TokenFault("claim_sid")
    return session


def _read_name(claim: object) -> str:
    return claim if isinstance(claim, str) and len(claim) <= MAX_CLAIM else ""
