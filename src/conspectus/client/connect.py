"""Finding a server, and letting go of it."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache

import httpx

from conspectus import bootstrap
from conspectus.client.engine import RemoteEngine
from conspectus.client.transport import Transport, TransportLimits
from conspectus.errors import InvalidInput
from conspectus.model.validation import checked_arguments
from conspectus.settings import Settings


@asynccontextmanager
@checked_arguments
async def open(
    url: str | None = None, *, api_key: str | None = None, settings: Settings | None = None
) -> AsyncIterator[RemoteEngine]:
    """Ask the server at `url` with an API key, and let go of it at the end of the block.

    What is not given comes from the settings, and they from the environment (CONSPECTUS_URL and
    CONSPECTUS_API_KEY). Nothing is asked yet. Raises InvalidInput for an address or a key that cannot be one.
    """
    chosen = Settings.from_environment() if settings is None else settings
    address = checked(url or chosen.url)
    limits = TransportLimits(seconds=chosen.client_timeout_seconds, answer_bytes=chosen.max_response_bytes)
    headers = authorization(chosen.api_key if api_key is None else api_key)
    async with httpx.AsyncClient(
        headers=headers, timeout=chosen.client_timeout_seconds, verify=_trusted()
    ) as http:
        channel = Transport(http, address, limits)
        yield RemoteEngine(channel, bootstrap.local_files(chosen), bootstrap.local_archives(chosen))


@cache
def _trusted() -> ssl.SSLContext:
    """The authorities of this machine, read once: there are many, and every client would read them anew."""
    return httpx.create_ssl_context()


def checked(url: str) -> str:
    """The address without what a path is appended to. Raises InvalidInput."""
    try:
        parts = httpx.URL(url)
    except httpx.InvalidURL as fault:
        raise InvalidInput("url", f"{url!r:.200} is not a valid address: {fault}") from fault
    if parts.scheme not in {"http", "https"} or not parts.host:
        raise InvalidInput("url", f"{url!r:.200} does not begin with http:// or https:// and a name")
    if parts.userinfo or parts.query or parts.fragment:
        raise InvalidInput("url", "holds more than a server and a path; give the key as `api_key`")
    return str(parts).rstrip("/")


def authorization(api_key: str) -> dict[str, str]:
    """The header that carries the key, if there is one. Raises InvalidInput."""
    if not api_key:
        return {}
    if not (api_key.isascii() and api_key.isprintable()) or " " in api_key:
        raise InvalidInput("api_key", "has characters that are not allowed in a key")
    return {"Authorization": f"Bearer {api_key}"}
