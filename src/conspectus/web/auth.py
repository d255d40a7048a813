"""Authentication, which is complete before anything of a request's body is read."""

import asyncio
import ipaddress
import math
import time
from collections import OrderedDict
from functools import partial
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from conspectus.engine import Engine
from conspectus.errors import PermissionDenied, Unauthenticated
from conspectus.mcp.tool import PATH as MODELS
from conspectus.model.access import LOCAL_OWNER, Person
from conspectus.settings import Settings
from conspectus.web.connections import CONNECTION, Connection, network_of
from conspectus.web.problem_details import refuse

API = "/api/"
METRICS = "/metrics"
BEARER = "bearer"
LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
OWN_SITE = frozenset({"", "same-origin", "none"})


class Authentication:
    """Admits requests with a valid key; without accounts, all requests from this machine."""

    def __init__(self, app: ASGIApp, engine: Engine, settings: Settings) -> None:
        self._app = app
        self._engine = engine
        self._settings = settings
        self._failures = Failures(settings)
        self._accounts = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with its person. Raises Unauthenticated, Refused or PermissionDenied."""
        path = scope["path"] if scope["type"] == "http" else ""
        if path.startswith(API) or path in {METRICS, MODELS}:
            headers = Headers(scope=scope)
            if path == MODELS:
                require_own_origin(headers, self._settings)
            person = await self._proven(headers, scope)
            still_good = partial(self._person, headers)
            scope["state"].update(person=person, engine=self._engine.as_person(person), still_good=still_good)
        await self._app(scope, receive, send)

    async def _proven(self, headers: Headers, scope: Scope) -> Person:
        """The caller; the address counts a failure, and the connection a success."""
        try:
            person = await self._person(headers)
        except Unauthenticated:
            await self._failures.note(network_of(scope.get("client")))
            raise
        connection: Connection | None = scope["state"].get(CONNECTION)
        if connection is not None:
            connection.prove()
        return person

    async def _person(self, headers: Headers) -> Person:
        secret = bearer(headers)
        if not is_loopback(self._settings.host) or await self._has_accounts():
            if secret is None:
                raise Unauthenticated
            return await self._engine.people.authenticate(secret)
        require_own_site(headers, self._settings)
        return LOCAL_OWNER

    async def _has_accounts(self) -> bool:
        """Asked each time until there are some, as another process may make the first."""
        self._accounts = self._accounts or bool(await self._engine.people.list_users())
        return self._accounts


def bearer(headers: Headers) -> str | None:
    """The secret of the Authorization header. Raises Unauthenticated for another kind of header."""
    given = headers.get("authorization")
    if given is None:
        return None
    scheme, _, secret = given.partition(" ")
    if scheme.lower() != BEARER or not secret.strip():
        raise Unauthenticated
    return secret.strip()


def require_own_site(headers: Headers, settings: Settings) -> None:
    """Raise PermissionDenied for what a web page had a browser ask of a server that needs no key.

    A page can have any name lead to this machine, so the name in Host must be one that is ours.
    """
    if name_in(headers.get("host", "")) not in LOCAL_NAMES | {settings.host}:
        raise PermissionDenied("use this server without a key", "the name localhost in the Host header")
    require_own_origin(headers, settings)


def require_own_origin(headers: Headers, settings: Settings) -> None:
    """Raise PermissionDenied for what a web page of another origin had a browser ask."""
    host, origin = headers.get("host", ""), headers.get("origin")
    if origin in origins(settings):
        return
    if headers.get("sec-fetch-site", "") not in OWN_SITE or (origin and origin.partition("://")[2] != host):
        raise PermissionDenied("use this server from a web page", "a key, or its origin in cors_origins")


def origins(settings: Settings) -> list[str]:
    """The web origins that may ask this server from a browser."""
    return [each.strip() for each in settings.cors_origins.split(",") if each.strip()]


def name_in(host: str) -> str:
    """The name of a Host header without its port; nothing where there is none that can be read."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server that listens there."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


AGAIN: Final = "Retry-After"
MINUTE: Final = 60.0
REMEMBERED: Final = 10_000


class Failures:
    """Answers late once an address has failed too often. A valid key is never refused for what others did."""

    def __init__(self, settings: Settings) -> None:
        self._most = settings.address_failures_per_minute
        self._delay = settings.failure_delay_seconds
        self._used_until: OrderedDict[str, float] = OrderedDict()

    async def note(self, address: str) -> None:
        """Count a failure. Raises Refused, after a pause, where there were too many."""
        if not self._most:
            return
        now = time.monotonic()
        used_until = max(self._used_until.get(address, now), now) + MINUTE / self._most
        if used_until - now > MINUTE:
            await asyncio.sleep(self._delay)
            wait = str(math.ceil(MINUTE / self._most))
            refuse(
                429,
                f"too many requests of this address had no valid key; ask again in {wait} s",
                **{AGAIN: wait},
            )
        self._used_until[address] = used_until
        self._used_until.move_to_end(address)
        if len(self._used_until) > REMEMBERED:
            self._used_until.popitem(last=False)
