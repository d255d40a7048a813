"""Signatures of JSON web tokens (RFC 7515, RFC 8725), checked with the keys of their issuer."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NoReturn

import jwt
from jwt.algorithms import get_default_algorithms
from jwt.utils import base64url_decode

from conspectus.ports.identities import TokenFault, TokenUse
from conspectus.providers.issuer_check import IssuerCheck
from conspectus.providers.issuer_keys import IssuerKeys
from conspectus.providers.issuer_metadata import IssuerFault

PARTS: Final = re.compile(r"(?P<header>[\w-]+)\.[\w-]*\.[\w-]*", re.ASCII)
"""Header, payload and signature. A detached payload and a missing signature are refused later."""
MAX_TOKEN_LENGTH: Final = 16_384
"""Characters of a token. A longer one is refused before it is parsed."""
TOKEN_TYPES: Final[Mapping[TokenUse, frozenset[str]]] = {
    "access": frozenset({"jwt", "at+jwt", "application/at+jwt"}),
    "id": frozenset({"jwt"}),
    "logout": frozenset({"jwt", "logout+jwt", "application/logout+jwt"}),
}
"""Values of `typ` of the tokens of each use."""
CURVES: Final[Mapping[str, frozenset[str]]] = {
    "ES256": frozenset({"P-256"}),
    "ES384": frozenset({"P-384"}),
    "ES512": frozenset({"P-521"}),
    "EdDSA": frozenset({"Ed25519", "Ed448"}),
}
"""The curves of each algorithm that has one."""


class JwtVerifier:
    """The port `TokenVerifier`: only these `algorithms`, and only keys that the issuer publishes."""

    def __init__(
        self, keys: IssuerKeys, algorithms: frozenset[str], check: IssuerCheck | None = None
    ) -> None:
        self._keys = keys
        self._algorithms = algorithms
        self._check = check

    async def verify(self, token: str, use: TokenUse = "access") -> Mapping[str, Any]:
        """Return the claims of a token that the issuer has signed. Raises TokenFault."""
        header = read_header(token, use)
        algorithm, key_id = header.get("alg"), header.get("kid")
        if not isinstance(algorithm, str) or algorithm not in self._algorithms:
            raise TokenFault("algorithm")
        if not isinstance(key_id, str) or not key_id:
            raise TokenFault("no_key_id")
        key = await self._keys.find(key_id)
        if key is None:
            raise TokenFault("unknown_key" if self._keys.has_keys else "issuer_unavailable")
        return read_object(verify_signature(token, key, algorithm), "payload")

    async def find_problems(self) -> Sequence[str]:
        """Ask the issuer, and return a sentence for each problem of its configuration."""
        try:
            keys = await self._keys.load()
        except IssuerFault as fault:
            return [f"sign-in does not work: {fault}"]
        problems = [] if self._check is None else [*await self._check.find_problems()]
        if not any(fits(key, algorithm) for key in keys.values() for algorithm in self._algorithms):
            mismatch = "no key of the issuer fits CONSPECTUS_OIDC_ALGORITHMS; add the algorithm of its keys"
            problems.append(f"sign-in does not work: {mismatch}")
        return problems

    async def close(self) -> None:
        """Release connections."""
        await self._keys.close()


def read_header(token: str, use: TokenUse) -> Mapping[str, Any]:
    """Return the header of a token, which nobody has verified yet. Raises TokenFault.

    `jku`, `jwk`, `x5u` and `x5c` would let a token name its own key, so nothing reads them.
    """
    if len(token) > MAX_TOKEN_LENGTH:
        raise TokenFault("too_long")
    parts = PARTS.fullmatch(token)
    if parts is None:
        raise TokenFault("malformed")
    try:
        encoded_header = base64url_decode(parts["header"])
    except ValueError:
        raise TokenFault("malformed") from None
    header = read_object(encoded_header, "malformed")
    if "crit" in header or "b64" in header:
        raise TokenFault("critical_header")
    token_type = header.get("typ", "JWT")
    if not isinstance(token_type, str) or token_type.lower() not in TOKEN_TYPES[use]:
        raise TokenFault("token_type")
    return header


def fits(key: Mapping[str, Any], algorithm: str) -> bool:
    """Return whether a key is for an algorithm: its type and curve, and its own `alg` if it has one."""
    if key.get("alg", algorithm) != algorithm:
        return False
    if algorithm in CURVES:
        return key.get("kty") in {"EC", "OKP"} and key.get("crv") in CURVES[algorithm]
    return key.get("kty") == "RSA"


def verify_signature(token: str, key: Mapping[str, Any], algorithm: str) -> bytes:
    """Return the payload of a token that a key has signed with an algorithm. Raises TokenFault."""
    if not fits(key, algorithm):
        raise TokenFault("key_algorithm")
    try:
        public_key: Any = get_default_algorithms()[algorithm].from_jwk(dict(key))
        options: Any = {"enforce_minimum_key_length": True}
        payload: bytes = jwt.PyJWS([algorithm]).decode_complete(token, public_key, [algorithm], options)[
            "payload"
        ]
    except (jwt.InvalidKeyError, ValueError, TypeError):
        raise TokenFault("unusable_key") from None
    except jwt.PyJWTError:
        raise TokenFault("signature") from None
    return payload


def read_object(text: bytes, code: str) -> Mapping[str, Any]:
    """Return a JSON object. Raises TokenFault, also for a member that is there twice, and for NaN."""

    def refuse_constant(_name: str) -> NoReturn:
        raise ValueError

    def collect_members(members: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(members)) != len(members):
            raise ValueError
        return dict(members)

    try:
        content = json.loads(text, object_pairs_hook=collect_members, parse_constant=refuse_constant)
    except (ValueError, RecursionError):
        raise TokenFault(code) from None
    if not isinstance(content, dict):
        raise TokenFault(code)
    return content
