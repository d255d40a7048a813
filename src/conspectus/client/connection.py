"""The connection to a server: its address, key and certificates."""

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Final

import httpx

from conspectus import bootstrap
from conspectus.client.engine import RemoteEngine
from conspectus.client.login_tokens import LoginTokens
from conspectus.client.stored_logins import StoredLogins
from conspectus.client.transport import Transport, TransportLimits
from conspectus.errors import InvalidInput
from conspectus.model.validation import checked_arguments
from conspectus.settings import Settings

MAX_ISSUER_SECONDS: Final = 15
"""Longest wait for an identity provider. It computes little, and a person waits at a terminal."""


@asynccontextmanager
@checked_arguments
async def open(
    url: str | None = None, *, api_key: str | None = None, settings: Settings | None = None
) -> AsyncIterator[RemoteEngine]:
    """Use the server at `url` with an API key, and disconnect at the end of the block.

    Defaults come from the settings and the environment (CONSPECTUS_URL and CONSPECTUS_API_KEY). Without a
    key, the login of `conspectus login` at that server is used, if there is one. No request is sent yet.
    Raises InvalidInput for an invalid address or key.
    """
    options = Settings.from_environment() if settings is None else settings
    address = check_address(url or options.url)
    limits = TransportLimits(seconds=options.client_timeout_seconds, answer_bytes=options.max_response_bytes)
    key = options.api_key if api_key is None else api_key
    hooks = {"request": [_trace_requests(current)] if (current := bootstrap.start_telemetry(options)) else []}
    async with (
        issuer_client(options) as issuer_http,
        httpx.AsyncClient(
            headers=authorization(key),
            auth=None if key else _find_login(address, options, issuer_http),
            timeout=options.client_timeout_seconds,
            verify=_load_authorities(),
            event_hooks=hooks,
        ) as http,
    ):
        channel = Transport(http, address, limits)
        yield RemoteEngine(channel, bootstrap.local_files(options), bootstrap.local_archives(options))


def issuer_client(settings: Settings) -> httpx.AsyncClient:
    """Return a client of requests to an identity provider."""
    seconds = min(settings.client_timeout_seconds, MAX_ISSUER_SECONDS)
    return httpx.AsyncClient(timeout=seconds, verify=_load_authorities())


def stored_logins(settings: Settings) -> StoredLogins:
    """Return the logins of the command line."""
    return StoredLogins(Path(settings.login_file).expanduser())


def _find_login(address: str, settings: Settings, http: httpx.AsyncClient) -> LoginTokens | None:
    """Return the tokens of the login at a server; None without one. Raises InvalidInput."""
    logins = stored_logins(settings)
    login = logins.find(address)
    return None if login is None else LoginTokens(login, logins, http)


def _trace_requests(current: Callable[[], dict[str, str]]) -> Callable[[httpx.Request], Awaitable[None]]:
    """Have a request continue the trace of the caller."""

    async def carry(request: httpx.Request) -> None:
        request.headers.update(current())

    return carry


@cache
def _load_authorities() -> ssl.SSLContext:
    """Return the certificate authorities of this machine, loaded once for all clients."""
    return httpx.create_ssl_context()


def check_address(url: str) -> str:
    """Return the base address. Raises InvalidInput."""
    try:
        parts = httpx.URL(url)
    except (httpx.InvalidURL, UnicodeEncodeError) as fault:
        raise InvalidInput("url", f"{url!r:.200} is not a valid address: {fault}") from fault
    if parts.scheme not in {"http", "https"} or not parts.host:
        raise InvalidInput("url", f"{url!r:.200} does not begin with http:// or https:// and a name")
    if parts.userinfo or parts.query or parts.fragment:
        raise InvalidInput("url", "must be a server and a path only; pass the key as `api_key`")
    return str(parts).rstrip("/")


def authorization(api_key: str) -> dict[str, str]:
    """Return the Authorization header, if there is a key. Raises InvalidInput."""
    if not api_key:
        return {}
    if not (api_key.isascii() and api_key.isprintable()) or " " in api_key:
        raise InvalidInput("api_key", "contains characters that are not allowed in a key")
    return {"Authorization": f"Bearer {api_key}"}
