"""A small issuer of tokens: metadata and keys on the loopback, and tokens signed as a test wants them."""

import base64
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, TypeAlias

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import get_default_algorithms

from tests.support.samples import NOON
from tests.support.web_server import Answer, Request, ScriptedServer

METADATA: Final = "/.well-known/openid-configuration"
JWKS: Final = "/keys"
AUDIENCE: Final = "https://context.example.org"
PrivateKey: TypeAlias = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey
RSA_KEY: Final = rsa.generate_private_key(65_537, 2_048)
OTHER_RSA_KEY: Final = rsa.generate_private_key(65_537, 2_048)
SHORT_RSA_KEY: Final = rsa.generate_private_key(65_537, 1_024)
P256_KEY: Final = ec.generate_private_key(ec.SECP256R1())
P384_KEY: Final = ec.generate_private_key(ec.SECP384R1())
ED25519_KEY: Final = ed25519.Ed25519PrivateKey.generate()


def public_jwk(key: PrivateKey, key_id: str | None, algorithm: str, **members: Any) -> dict[str, Any]:
    """The public half of a key, as an issuer publishes it."""
    jwk: dict[str, Any] = get_default_algorithms()[algorithm].to_jwk(key.public_key(), as_dict=True)
    jwk = {name: member for name, member in jwk.items() if name != "key_ops"}
    return {**jwk, **({} if key_id is None else {"kid": key_id}), "use": "sig", "alg": algorithm, **members}


def public_pem(key: PrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def segment(content: object) -> str:
    """One part of a token: bytes as they are, anything else as JSON."""
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def usual_keys() -> list[dict[str, Any]]:
    return [
        public_jwk(RSA_KEY, "rsa", "RS256"),
        public_jwk(RSA_KEY, "pss", "PS256"),
        public_jwk(P256_KEY, "p256", "ES256"),
        public_jwk(ED25519_KEY, "ed25519", "EdDSA"),
    ]


class TokenIssuer:
    """An issuer that counts requests, and whose metadata, keys and failures a test may change."""

    def __init__(self) -> None:
        self.keys: list[Any] = usual_keys()
        self.metadata: dict[str, Any] = {}
        """Members of the metadata that differ from the usual ones."""
        self.failure: Answer | None = None
        """The answer to all requests, if it is away."""
        self.server = ScriptedServer({METADATA: self._metadata, JWKS: self._keys})

    async def __aenter__(self) -> "TokenIssuer":
        await self.server.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self.server.__aexit__(*error)

    @property
    def url(self) -> str:
        return self.server.base

    @property
    def fetches(self) -> int:
        """How often the keys were fetched."""
        return self.server.count(METADATA)

    def claims(self, at: datetime = NOON, **changes: Any) -> dict[str, Any]:
        """The claims of a good token; None leaves one out."""
        seconds = int(at.timestamp())
        claims: dict[str, Any] = {
            "iss": self.url,
            "aud": AUDIENCE,
            "sub": "subject-of-ann",
            "iat": seconds,
            "exp": seconds + 600,
            "scope": "openid read write",
            "preferred_username": "ann",
            **changes,
        }
        return {name: claim for name, claim in claims.items() if claim is not None}

    def sign(
        self,
        claims: Mapping[str, Any] | bytes,
        *,
        key: Any = RSA_KEY,
        algorithm: str = "RS256",
        **header: Any,
    ) -> str:
        """A token with these claims; None leaves a member of the header out."""
        members = {"typ": "at+jwt", "alg": algorithm, "kid": "rsa", **header}
        members = {name: member for name, member in members.items() if member is not None}
        content = claims if isinstance(claims, bytes) else json.dumps(claims).encode()
        signed = f"{segment(members)}.{segment(content)}"
        method = get_default_algorithms()[algorithm]
        signature = method.sign(signed.encode(), method.prepare_key(key))
        return f"{signed}.{segment(signature)}"

    def token(self, **changes: Any) -> str:
        """A good token with changed claims."""
        return self.sign(self.claims(**changes))

    def _metadata(self, _request: Request) -> Answer:
        document = {"issuer": self.url, "jwks_uri": f"{self.url}{JWKS}", **self.metadata}
        return self.failure or Answer(json.dumps(document).encode(), type="application/json")

    def _keys(self, _request: Request) -> Answer:
        return self.failure or Answer(json.dumps({"keys": self.keys}).encode(), type="application/json")
