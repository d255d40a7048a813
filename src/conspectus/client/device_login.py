"""Logins of the command line: the device authorization grant (RFC 8628), refreshing and revoking."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import httpx

from conspectus.client.issuer_requests import (
    DEVICE_CLIENT,
    IssuerAnswer,
    read_address,
    read_issuer,
    read_resource,
    read_text,
    request_json,
)
from conspectus.client.stored_logins import Login
from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput, LoginFailed

DEVICE_GRANT: Final = "urn:ietf:params:oauth:grant-type:device_code"
USUAL_SCOPES: Final = ("openid", "offline_access")
CONSENT: Final = {"prompt": "consent"}
"""Without it, some issuers leave out `offline_access` (OpenID Connect Core, 11)."""
UNKNOWN_RESOURCE: Final = frozenset({"invalid_request", "invalid_target"})
"""Errors of issuers that do not know the parameter `resource` (RFC 8707)."""
USUAL_INTERVAL: Final = 5
MAX_INTERVAL: Final = 60
MAX_WAIT_SECONDS: Final = 1_800
"""Longest time that a code may be entered."""
MAX_TOKEN_SECONDS: Final = 86_400
"""Longest time that an access token is used."""


@dataclass(frozen=True, slots=True)
class DeviceCode:
    """A login that waits for a person: the address to open, and the code to enter there."""

    address: str
    user_code: str
    complete_address: str | None
    device_code: str
    interval: float
    expires: float
    login: Login
    """The login that it becomes, without tokens."""


class DeviceLogin:
    """Logs in at the identity provider of a server. `now` is in seconds since 1970."""

    def __init__(
        self,
        http: httpx.AsyncClient,
        *,
        now: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._http = http
        self._now = now
        self._sleep = sleep

    async def begin(self, server: str, client_id: str = "", scopes: Sequence[str] = ()) -> DeviceCode:
        """Ask for a code. Raises LoginFailed, InvalidInput or ServerUnavailable."""
        resource = await read_resource(self._http, server)
        issuer = resource["authorization_servers"][0]
        client = client_id or resource.get(DEVICE_CLIENT)
        if not isinstance(client, str) or not client:
            raise InvalidInput("client_id", "is required, because the server names none; give --client-id")
        metadata = await read_issuer(self._http, issuer)
        device_endpoint = read_address(metadata, "device_authorization_endpoint")
        token_endpoint = read_address(metadata, "token_endpoint")
        if device_endpoint is None or token_endpoint is None:
            raise LoginFailed(f"{issuer} has no device flow: use an API key")
        named = scopes or [scope for scope in resource.get("scopes_supported", ()) if isinstance(scope, str)]
        login = Login(
            server=server,
            issuer=issuer,
            client_id=client,
            token_endpoint=token_endpoint,
            revocation_endpoint=read_address(metadata, "revocation_endpoint"),
            resource=server,
        )
        form = {"client_id": client, "scope": " ".join(dict.fromkeys((*USUAL_SCOPES, *named)))}
        answer = await request_json(self._http, device_endpoint, {**form, **_target_of(login), **CONSENT})
        if answer.error in UNKNOWN_RESOURCE:
            login = replace(login, resource="")
            answer = await request_json(self._http, device_endpoint, form)
        return self._read_code(answer, login)

    def _read_code(self, answer: IssuerAnswer, login: Login) -> DeviceCode:
        """Return the code in an answer. Raises LoginFailed."""
        _require_success(answer, "the identity provider gave no code")
        document = answer.document
        complete = document.get("verification_uri_complete")
        is_complete = isinstance(complete, str) and complete.isprintable()
        seconds = _read_seconds(document, "expires_in", MAX_WAIT_SECONDS, MAX_WAIT_SECONDS)
        return DeviceCode(
            address=read_text(document, "verification_uri"),
            user_code=read_text(document, "user_code"),
            complete_address=complete if is_complete else None,
            device_code=read_text(document, "device_code"),
            interval=_read_seconds(document, "interval", USUAL_INTERVAL, MAX_INTERVAL),
            expires=self._now() + seconds,
            login=login,
        )

    async def wait(self, code: DeviceCode) -> Login:
        """Return the login when the person has entered the code. Raises LoginFailed or ServerUnavailable."""
        interval = code.interval
        form = {
            "grant_type": DEVICE_GRANT,
            "device_code": code.device_code,
            "client_id": code.login.client_id,
            **_target_of(code.login),
        }
        while self._now() < code.expires:
            await self._sleep(interval)
            answer = await request_json(self._http, code.login.token_endpoint, form)
            match answer.error:
                case "authorization_pending":
                    continue
                case "slow_down":
                    interval = min(interval + USUAL_INTERVAL, MAX_INTERVAL)
                case "access_denied":
                    raise LoginFailed("the login was refused at the identity provider")
                case "expired_token":
                    break
                case _:
                    return self._read_tokens(answer, code.login)
        raise LoginFailed("the code was not entered in time")

    async def refresh(self, login: Login) -> Login:
        """Return the login with a new access token. Raises LoginFailed or ServerUnavailable."""
        if not login.refresh_token:
            raise LoginFailed(f"the login at {login.server} has expired")
        form = {
            "grant_type": "refresh_token",
            "refresh_token": login.refresh_token,
            "client_id": login.client_id,
            **_target_of(login),
        }
        answer = await request_json(self._http, login.token_endpoint, form)
        if answer.error == "invalid_grant":
            raise LoginFailed(f"the login at {login.server} has ended")
        return self._read_tokens(answer, login)

    async def revoke(self, login: Login) -> bool:
        """End the login at the identity provider, and return whether it did. Raises ServerUnavailable."""
        token, kind = login.access_token, "access_token"
        if login.refresh_token:
            token, kind = login.refresh_token, "refresh_token"
        if login.revocation_endpoint is None:
            return False
        form = {"token": token, "token_type_hint": kind, "client_id": login.client_id}
        return (await request_json(self._http, login.revocation_endpoint, form)).status == httpx.codes.OK

    def _read_tokens(self, answer: IssuerAnswer, login: Login) -> Login:
        """Return a login with the tokens of an answer. Raises LoginFailed."""
        _require_success(answer, "the identity provider gave no token")
        refresh_token = answer.document.get("refresh_token")
        seconds = _read_seconds(answer.document, "expires_in", 0, MAX_TOKEN_SECONDS)
        return replace(
            login,
            access_token=read_text(answer.document, "access_token"),
            refresh_token=refresh_token if isinstance(refresh_token, str) else login.refresh_token,
            expires=self._now() + seconds,
        )


def _target_of(login: Login) -> dict[str, str]:
    """Return the parameter that says what the tokens are for; none for an issuer that does not know it."""
    return {"resource": login.resource} if login.resource else {}


def _require_success(answer: IssuerAnswer, fault: str) -> None:
    """Raise LoginFailed for an error, with its code."""
    if answer.status != httpx.codes.OK or answer.error:
        raise LoginFailed(f"{fault}: status {answer.status}, error {answer.error!r:.100}")


def _read_seconds(document: Mapping[str, Any], name: str, usual: float, maximum: float) -> float:
    """Return a number of seconds in an answer, within bounds; the usual one if there is none."""
    seconds = document.get(name, usual)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return usual
    return min(max(float(seconds), 0.0), maximum)
