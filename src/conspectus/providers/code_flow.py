"""Sign-in on the pages of an issuer: the authorization code flow of OpenID Connect, with PKCE (RFC 7636)."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote_plus, urlencode

from conspectus.deferred import dataclass
from conspectus.errors import FetchFailed, InvalidInput, TooLarge
from conspectus.model.identities import SignInAttempt
from conspectus.ports.identities import TokenFault
from conspectus.ports.web import Fetched, Fetcher
from conspectus.providers.issuer_metadata import (
    IssuerFault,
    IssuerMetadata,
    fetch_metadata,
    read_endpoint,
    read_json,
)

FORM: Final = "application/x-www-form-urlencoded"
AWAY: Final = "issuer_unavailable"
BASIC: Final = "client_secret_basic"
CHALLENGE_METHOD: Final = "S256"
NO_SIGN_IN: Final = "sign-in in the console does not work"
WRONG_CLIENT: Final = ("invalid_client", "unauthorized_client")
"""Errors of a token endpoint that does not accept the id or the secret of a client (RFC 6749, 5.2)."""
TRIAL: Final = "conspectus-check-of-the-client-without-any-sign-in"
"""A code and its verifier, which has at least 43 characters (RFC 7636, 4.1)."""


@dataclass(frozen=True, slots=True)
class Client:
    """What the issuer knows of this server: its id, its secret (empty: none), and where browsers return."""

    id: str
    secret: str
    redirect_address: str
    scopes: str


class AuthorizationCodeFlow:
    """The port `CodeFlow`. No token of the issuer is stored."""

    def __init__(self, issuer: str, client: Client, fetcher: Fetcher) -> None:
        self._metadata = IssuerMetadata(issuer, fetcher)
        self._client = client
        self._fetcher = fetcher

    async def sign_in_address(self, attempt: SignInAttempt) -> str:
        """Return the address to which a browser is sent. Raises TokenFault if the issuer is away."""
        address = await self._endpoint("authorization_endpoint")
        parameters = {
            "response_type": "code",
            "client_id": self._client.id,
            "redirect_uri": self._client.redirect_address,
            "scope": self._client.scopes,
            "state": attempt.state,
            "nonce": attempt.nonce,
            "code_challenge": challenge_of(attempt.code_verifier),
            "code_challenge_method": CHALLENGE_METHOD,
        }
        return add_query(address, parameters)

    async def exchange(self, code: str, attempt: SignInAttempt) -> str:
        """Return the ID token for a code, which nobody has verified yet. Raises TokenFault."""
        await self._endpoint("token_endpoint")
        return read_id_token(await self._post_code(await self._metadata.read(), code, attempt.code_verifier))

    async def _post_code(self, metadata: Mapping[str, Any], code: str, code_verifier: str) -> Fetched:
        """Return the answer of the token endpoint to a code. Raises TokenFault if it is away."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._client.redirect_address,
            "code_verifier": code_verifier,
        }
        headers = {"Accept": "application/json", "Content-Type": FORM}
        if self._client.secret and BASIC in metadata.get("token_endpoint_auth_methods_supported", [BASIC]):
            headers["Authorization"] = basic_credentials(self._client)
        else:
            form["client_id"] = self._client.id
            if self._client.secret:
                form["client_secret"] = self._client.secret
        body = urlencode(form).encode("ascii")
        try:
            return await self._fetcher.fetch(
                metadata["token_endpoint"], method="POST", headers=headers, body=body
            )
        except (FetchFailed, TooLarge, InvalidInput) as fault:
            raise TokenFault(AWAY, str(fault)) from None

    async def sign_out_address(self, back: str) -> str | None:
        """Return the address that ends the session at the issuer; None if it has none or is away.

        The issuer may ask the user, because it gets no ID token as a hint.
        """
        try:
            address = read_endpoint(await self._metadata.read(), "end_session_endpoint")
        except IssuerFault:
            return None
        return add_query(address, {"client_id": self._client.id, "post_logout_redirect_uri": back})

    async def find_problems(self) -> Sequence[str]:
        """Return a sentence for each problem; none for an issuer without metadata, which others report."""
        try:
            metadata = await fetch_metadata(self._fetcher, self._metadata.issuer)
        except IssuerFault:
            return []
        try:
            for name in ("authorization_endpoint", "token_endpoint"):
                read_endpoint(metadata, name)
        except IssuerFault as fault:
            return [f"{NO_SIGN_IN}: {fault}"]
        challenges = metadata.get("code_challenge_methods_supported")
        if isinstance(challenges, list) and CHALLENGE_METHOD not in challenges:
            return [f"{NO_SIGN_IN}: the issuer lacks PKCE with S256. Switch it on there"]
        return await self._try_client(metadata)

    async def _try_client(self, metadata: Mapping[str, Any]) -> list[str]:
        """Return a sentence if the issuer does not know the client.

        It is sent a code that it gave to nobody: it refuses the code only after it has accepted the client.
        """
        try:
            answer = await self._post_code(metadata, TRIAL, TRIAL)
            error = read_json(answer).get("error")
        except TokenFault as fault:
            return [f"{NO_SIGN_IN}: {fault.detail}"]
        except IssuerFault as fault:
            return [f"{NO_SIGN_IN}: {fault}"]
        if error not in WRONG_CLIENT:
            return []
        return [
            f"{NO_SIGN_IN}: the issuer refuses the client ({error}); correct CONSPECTUS_OIDC_CLIENT_ID and"
            " CONSPECTUS_OIDC_CLIENT_SECRET"
        ]

    async def close(self) -> None:
        """Release connections."""
        await self._fetcher.close()

    async def _endpoint(self, name: str) -> str:
        try:
            return read_endpoint(await self._metadata.read(), name)
        except IssuerFault as fault:
            raise TokenFault(AWAY, str(fault)) from None


def challenge_of(code_verifier: str) -> str:
    """Return what the issuer compares with the verifier that comes with the code."""
    digest = hashlib.sha256(code_verifier.encode("ascii")).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode("ascii")


def basic_credentials(client: Client) -> str:
    """Return the Authorization header of a client: both parts are encoded as in a form (RFC 6749, 2.3.1)."""
    pair = f"{quote_plus(client.id)}:{quote_plus(client.secret)}"
    return f"Basic {base64.b64encode(pair.encode('ascii')).decode('ascii')}"


def add_query(address: str, parameters: Mapping[str, str]) -> str:
    """Return an address with more parameters in its query."""
    return f"{address}{'&' if '?' in address else '?'}{urlencode(parameters)}"


def read_id_token(response: Fetched) -> str:
    """Return the ID token in the answer of a token endpoint. Raises TokenFault."""
    try:
        document = read_json(response)
    except IssuerFault as fault:
        raise TokenFault("token_answer", f"status={response.status} {fault}") from None
    if response.status != 200:
        reason = "client" if document.get("error") in WRONG_CLIENT else "code"
        raise TokenFault(reason, f"status={response.status} error={_shorten(document.get('error'))}")
    id_token = document.get("id_token")
    if not isinstance(id_token, str):
        raise TokenFault("no_id_token")
    return id_token


def _shorten(member: Any) -> str:
    """Return a member of an answer for the log, on one line."""
    return f"{member!r:.100}"
