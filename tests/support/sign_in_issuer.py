"""An issuer on the loopback on whose pages people sign in at once: the authorization code flow with PKCE."""

import json
import secrets
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import parse_qs, urlencode, urlsplit

from conspectus.providers.code_flow import Client, basic_credentials, challenge_of
from tests.support.token_issuer import TokenIssuer
from tests.support.web_server import Answer, Request, redirect

AUTHORIZE, TOKEN, END_SESSION = "/authorize", "/token", "/end-session"
CLIENT: Final = "console"
SECRET: Final = "a secret: with + and %"
EVENT: Final = "http://schemas.openid.net/event/backchannel-logout"


class SignInIssuer(TokenIssuer):
    """It asks nobody for a password, gives each code once, and checks the client, PKCE and the address."""

    def __init__(self, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        super().__init__()
        self._now = now
        self.client = Client(CLIENT, SECRET, "", "")
        self.subject = "subject-of-ann"
        self.id_claims: dict[str, Any] = {}
        """Claims of the next ID tokens that differ from the usual ones; None leaves one out."""
        self.forge: Callable[[Mapping[str, Any]], str] | None = None
        """Makes the next ID tokens of the usual claims, in place of a good signature."""
        self.token_answer: Answer | None = None
        """The answer to all requests for tokens, in place of a good one."""
        self._requests: dict[str, Mapping[str, str]] = {}
        self.server.answers |= {AUTHORIZE: self._authorize, TOKEN: self._exchange}

    async def __aenter__(self) -> "SignInIssuer":
        await super().__aenter__()
        self.metadata |= {
            "authorization_endpoint": f"{self.url}{AUTHORIZE}",
            "token_endpoint": f"{self.url}{TOKEN}",
            "end_session_endpoint": f"{self.url}{END_SESSION}",
            "code_challenge_methods_supported": ["S256"],
        }
        return self

    def answer(self, sign_in_address: str) -> dict[str, str]:
        """The parameters with which a browser comes back that was sent to an address."""
        query = {name: texts[-1] for name, texts in parse_qs(urlsplit(sign_in_address).query).items()}
        code = secrets.token_urlsafe(16)
        self._requests[code] = query
        return {"code": code, "state": query["state"], "iss": self.url}

    def logout_token(self, *, key: str = "rsa", **changes: Any) -> str:
        """A good logout token with changed claims."""
        claims = {"sub": self.subject, "jti": secrets.token_hex(4), "events": {EVENT: {}}, "aud": CLIENT}
        usual = self.claims(self._now(), scope=None, preferred_username=None)
        claims = {**usual, **claims, **changes}
        return self.sign(
            {name: claim for name, claim in claims.items() if claim is not None}, typ="logout+jwt", kid=key
        )

    def _authorize(self, request: Request) -> Answer:
        answer = self.answer(f"{self.url}{request.target}")
        return redirect(f"{request.query['redirect_uri']}?{urlencode(answer)}")

    def _exchange(self, request: Request) -> Answer:
        form = {name: texts[-1] for name, texts in parse_qs(request.body.decode()).items()}
        asked = self._requests.pop(form.get("code", ""), None)
        if self.token_answer is not None:
            return self.token_answer
        if request.headers.get("authorization") != basic_credentials(self.client):
            return _json({"error": "invalid_client"}, 401)
        is_same = asked is not None and asked["redirect_uri"] == form["redirect_uri"]
        if asked is None or not is_same or challenge_of(form["code_verifier"]) != asked["code_challenge"]:
            return _json({"error": "invalid_grant"}, 400)
        usual = self.claims(self._now(), aud=CLIENT, sub=self.subject, scope=None, nonce=asked["nonce"])
        claims = {**usual, "sid": "first", **self.id_claims}
        claims = {name: claim for name, claim in claims.items() if claim is not None}
        token = self.sign(claims, typ="JWT") if self.forge is None else self.forge(claims)
        return _json({"access_token": "opaque", "token_type": "Bearer", "id_token": token}, 200)


def _json(document: Mapping[str, Any], status: int) -> Answer:
    return Answer(json.dumps(document).encode(), status, type="application/json")
