"""Authentication, which is complete before anything of a request's body is read."""

import asyncio
import ipaddress
import json
import math
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from conspectus.access.scim_tokens import ScimTokens
from conspectus.engine import Engine
from conspectus.errors import InvalidInput, PermissionDenied, TooLarge, Unauthenticated
from conspectus.mcp.tool import HTTP_PATHS as MCP_PATHS
from conspectus.model.access import LOCAL_OWNER, PROVISIONER, Person
from conspectus.model.trust import ORIGIN_HEADER, ORIGINS, least_trusted
from conspectus.settings import Settings
from conspectus.web.connections import CONNECTION, Connection, network_of
from conspectus.web.problem_details import SCIM_PREFIX, refuse

API = "/api/"
SESSION = "/api/v1/session"
METRICS = "/metrics"
BEARER = "bearer"
LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
OWN_SITE = frozenset({"", "same-origin", "none"})
"""Values of Sec-Fetch-Site of requests that no page of another site made."""
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
COOKIE: Final = "conspectus_session"
SESSION_TOKEN: Final = "session_token"
"""The name under which the state of a request has the token of a session that it began."""
MAX_LOGIN_LENGTH: Final = 4_096
"""Most bytes of the body of a login."""
RETRY_AFTER: Final = "Retry-After"
TOKEN_DOTS: Final = 2
MINUTE_SECONDS: Final = 60.0
MAX_ADDRESSES: Final = 10_000
"""Addresses whose failures are remembered."""


class Authentication:
    """Admits requests with a valid key; without accounts, all requests from this machine."""

    def __init__(
        self,
        app: ASGIApp,
        engine: Engine,
        settings: Settings,
        failures: "FailureDelays",
        scim_tokens: ScimTokens,
    ) -> None:
        self._app = app
        self._engine = engine
        self._settings = settings
        self._failures = failures
        self._sign_ins = engine.sign_ins
        self._scim_tokens = scim_tokens
        self._accounts = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with its person. Raises Unauthenticated, Refused or PermissionDenied."""
        path = scope["path"] if scope["type"] == "http" else ""
        if self._scim_tokens and path.startswith(SCIM_PREFIX):
            scope["state"]["person"] = await self._authenticate(partial(self._provisioner, scope), scope)
        method = scope.get("method") if path == SESSION else None
        if (path.startswith(API) or path == METRICS or path in MCP_PATHS) and method != "DELETE":
            headers = Headers(scope=scope)
            if path in MCP_PATHS:
                require_origin(scope, self._settings)
            if method == "POST":
                require_same_origin(scope)
                receive, login = await read_login(receive)
                secret, invitation = login.get("key"), login.get("invitation")
            else:
                secret, invitation = read_bearer(headers), None
            still_good: Callable[[], Awaitable[Person]] = partial(self._person, scope, secret)
            if invitation is not None and secret is None:
                still_good = await self._accept(scope, invitation)
            person = limit_origin(await self._authenticate(still_good, scope), headers)
            scope["state"].update(person=person, engine=self._engine.as_person(person), still_good=still_good)
        await self._app(scope, receive, send)

    async def _authenticate(self, find_person: Callable[[], Awaitable[Person]], scope: Scope) -> Person:
        """Return the caller. A failure is counted for the address; a success proves the connection."""
        try:
            person = await find_person()
        except Unauthenticated:
            await self._failures.note(network_of(scope.get("client")))
            raise
        connection: Connection | None = scope["state"].get(CONNECTION)
        if connection is not None:
            connection.prove()
        return person

    async def _accept(self, scope: Scope, invitation: str) -> Callable[[], Awaitable[Person]]:
        """Return the function that finds the person of the session that an invitation begins."""

        async def accept() -> Person:
            person, scope["state"][SESSION_TOKEN] = await self._engine.logins.accept_invitation(invitation)
            return person

        await self._authenticate(accept, scope)
        return partial(self._engine.sessions.authenticate, scope["state"][SESSION_TOKEN])

    async def _person(self, scope: Scope, secret: str | None) -> Person:
        """Return the person of a key or a session; without accounts, the owner. Raises Unauthenticated."""
        headers = Headers(scope=scope)
        if self._sign_ins or not is_loopback(self._settings.host) or await self._has_accounts():
            if secret is not None:
                return await self._authenticate_secret(secret, scope["path"])
            return await self._engine.sessions.authenticate(session_token(scope, headers))
        require_same_site(scope, self._settings)
        return LOCAL_OWNER

    async def _authenticate_secret(self, secret: str, path: str) -> Person:
        """Return the person of a key or of a token of an issuer, with which no session begins."""
        if self._sign_ins is not None and path != SESSION and looks_like_token(secret):
            return await self._sign_ins.authenticate(secret)
        return await self._engine.keys.authenticate(secret)

    async def _provisioner(self, scope: Scope) -> Person:
        """Return the identity provider that manages people. Raises Unauthenticated."""
        self._scim_tokens.require(read_bearer(Headers(scope=scope)))
        return PROVISIONER

    async def _has_accounts(self) -> bool:
        """Return whether there are accounts. Another process may create the first, so only True is cached."""
        self._accounts = self._accounts or bool(await self._engine.people.list_users())
        return self._accounts


def limit_origin(person: Person, headers: Headers) -> Person:
    """Return the caller with at most the origin in a header. Raises InvalidInput for an unknown one."""
    header = headers.get(ORIGIN_HEADER)
    if header is None:
        return person
    origin = next((known_origin for known_origin in ORIGINS if known_origin == header), None)
    if origin is None:
        raise InvalidInput(ORIGIN_HEADER, f"must be one of {', '.join(ORIGINS)}")
    return replace(person, origin=least_trusted(person.origin, origin))


def looks_like_token(secret: str) -> bool:
    """Return whether a secret has the three parts of a JSON web token, which no API key has."""
    return secret.count(".") == TOKEN_DOTS


def read_bearer(headers: Headers) -> str | None:
    """Return the secret of the Authorization header. Raises Unauthenticated for another scheme."""
    authorization = headers.get("authorization")
    if authorization is None:
        return None
    scheme, _, secret = authorization.partition(" ")
    if scheme.lower() != BEARER or not secret.strip():
        raise Unauthenticated
    return secret.strip()


async def read_login(receive: Receive) -> tuple[Receive, dict[str, str]]:
    """Return a function that receives the body of a login again, and the texts in the body by name."""
    body = await read_body(receive, MAX_LOGIN_LENGTH)
    receive_again = replay_body(body, receive)
    try:
        login = json.loads(body)
    except (ValueError, RecursionError):
        return receive_again, {}
    members = login.items() if isinstance(login, dict) else ()
    return receive_again, {name: text for name, text in members if isinstance(text, str)}


async def read_body(receive: Receive, limit: int) -> bytes:
    """Return the body of a request. Raises TooLarge."""
    body, more = bytearray(), True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > limit:
            raise TooLarge("body", size=len(body), limit=limit)
    return bytes(body)


def replay_body(body: bytes, receive: Receive) -> Receive:
    """Return a function that receives a body that was read, and then the messages after it."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return messages.pop() if messages else await receive()

    return receive_again


def session_token(scope: Scope, headers: Headers) -> str:
    """Return the token in the cookie of a session. Raises Unauthenticated or PermissionDenied.

    A browser sends cookies with requests of any page, so the request must come from a page of this server.
    For that reason a cookie gives access to the API only.
    """
    token = cookie_token(headers)
    if not token or not scope["path"].startswith(API):
        raise Unauthenticated
    require_same_origin(scope, allow_unknown=scope["method"] in SAFE_METHODS)
    return token


def cookie_token(headers: Headers) -> str | None:
    """Return the token in the cookie of a session."""
    return cookie_parser(headers.get("cookie", "")).get(cookie_name(headers))


def set_session(answer: Response, scope: Scope, token: str | None, *, own_address: str) -> None:
    """Set the cookie of a session, which lasts until the browser is closed; with None, delete it.

    A proxy in front may speak HTTPS without being trusted to say so, so the origin of the page and the
    address of the server in the settings count too.
    """
    headers = Headers(scope=scope)
    addresses = (f"{scope['scheme']}://", headers.get("origin", ""), own_address)
    is_secure = any(address.startswith("https://") for address in addresses)
    max_age = 0 if token is None else None
    answer.set_cookie(
        cookie_name(headers), token or "", max_age, secure=is_secure, httponly=True, samesite="strict"
    )


def cookie_name(headers: Headers) -> str:
    """Return the name of the session cookie, with the port: browsers send a cookie to all ports of a host."""
    _, _, port = headers.get("host", "").rpartition(":")
    return f"{COOKIE}_{port}" if port.isascii() and port.isdecimal() else COOKIE


def is_own_origin(origin: str, scope: Scope) -> bool:
    """Return whether an Origin header names this server: its host, and its scheme or `https`.

    A server behind a proxy that speaks HTTPS does not know that, unless the proxy is trusted to say so. A
    page of `http` is never that of a server of `https`.
    """
    scheme, _, host = origin.partition("://")
    own_schemes = {scope["scheme"], "https"}
    return scheme in own_schemes and host == Headers(scope=scope).get("host", "")


def require_same_origin(scope: Scope, *, allow_unknown: bool = True) -> None:
    """Raise PermissionDenied for a request from a page of another origin, or of an unknown one."""
    headers = Headers(scope=scope)
    site, origin = headers.get("sec-fetch-site", ""), headers.get("origin", "")
    is_own = is_own_origin(origin, scope) if origin else allow_unknown or site
    if site not in OWN_SITE or not is_own:
        raise PermissionDenied("use a session", "a request from a page of this server")


def require_same_site(scope: Scope, settings: Settings) -> None:
    """Raise PermissionDenied for a request from a web page to a server that needs no key.

    A page can point any name at this machine, so the name in Host must be one of this server.
    """
    if read_host_name(Headers(scope=scope).get("host", "")) not in LOCAL_NAMES | {settings.host}:
        raise PermissionDenied("use this server without a key", "the name localhost in the Host header")
    require_origin(scope, settings)


def require_origin(scope: Scope, settings: Settings) -> None:
    """Raise PermissionDenied for a request from a web page of an origin that the settings do not allow."""
    headers = Headers(scope=scope)
    origin = headers.get("origin")
    if origin in origins(settings):
        return
    is_foreign = bool(origin) and not is_own_origin(origin or "", scope)
    if headers.get("sec-fetch-site", "") not in OWN_SITE or is_foreign:
        raise PermissionDenied("use this server from a web page", "a key, or its origin in cors_origins")


def origins(settings: Settings) -> list[str]:
    """Return the web origins that may use this server from a browser."""
    return [origin.strip() for origin in settings.cors_origins.split(",") if origin.strip()]


def read_host_name(host: str) -> str:
    """Return the name in a Host header without its port; empty if it cannot be parsed."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a server that listens at an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class FailureDelays:
    """Delays refusals of addresses with too many failures. A valid key is never refused for failures."""

    def __init__(self, settings: Settings, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._maximum = settings.address_failures_per_minute
        self._monotonic = monotonic
        self._delay = settings.failure_delay_seconds
        self._stopping = asyncio.Event()
        self._used_until: OrderedDict[str, float] = OrderedDict()
        """When each address has its whole allowance again. Each failure uses a share of a minute."""

    def end_delays(self) -> None:
        """End all delays, because the server stops."""
        self._stopping.set()

    async def note(self, address: str) -> None:
        """Count a failure. Raises Refused, after a pause, if there were too many."""
        if not self._maximum:
            return
        now = self._monotonic()
        used_seconds = max(self._used_until.get(address, now) - now, 0.0)
        # Added to the time first, the share of the first failure could be rounded up to more than a minute.
        share_seconds = MINUTE_SECONDS / self._maximum
        if used_seconds + share_seconds > MINUTE_SECONDS:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), self._delay)
            wait = str(math.ceil(MINUTE_SECONDS / self._maximum))
            refuse(
                429,
                f"too many requests of this address had no valid key; ask again in {wait} s",
                **{RETRY_AFTER: wait},
            )
        self._used_until[address] = now + used_seconds + share_seconds
        self._used_until.move_to_end(address)
        if len(self._used_until) > MAX_ADDRESSES:
            self._used_until.popitem(last=False)
