"""Sends requests to allowed addresses, within a time limit."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import field
from functools import cache

import httpcore
import httpx

from conspectus.deferred import dataclass
from conspectus.errors import FetchFailed, ForbiddenAddress, TooLarge
from conspectus.sources.web.allowed_connections import Connections
from conspectus.sources.web.content_codings import Unreadable
from conspectus.text.urls import Url

TRANSPORT_ERRORS = (
    httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError, httpcore.ConnectionNotAvailable,
    OSError,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """Limits: bytes of a response, compressed and decompressed; redirects; total seconds; allowed targets."""

    max_bytes: int = 50_000_000
    max_redirects: int = 5
    seconds: float = 30.0
    allow: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request. Headers and the body of the caller are sent to its origin only."""

    method: str
    url: Url
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    def redirect(self, status: int, location: str) -> "HttpRequest":
        """Return the redirected request. Another origin gets no header and no body, which may be secrets."""
        url = self.url.resolve(location)
        changes = (status == 303 and self.method != "HEAD") or (status < 303 and self.method == "POST")
        method = "GET" if changes else self.method
        if url.origin != self.url.origin:
            return HttpRequest(method, url)
        return HttpRequest(method, url, self.headers, self.body)


@cache
def load_authorities() -> ssl.SSLContext:
    """Return the certificate authorities of this machine, loaded once for all fetchers."""
    return httpx.create_ssl_context()


class HttpClient:
    """Sends requests to allowed addresses within a time limit."""

    def __init__(
        self,
        connections: Connections,
        seconds: float,
        certificates: ssl.SSLContext | None,
        *,
        maximum: int,
        max_idle: int,
    ) -> None:
        self._seconds = seconds
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=certificates or load_authorities(),
            max_connections=maximum,
            max_keepalive_connections=max_idle,
            keepalive_expiry=5.0,
            network_backend=connections,
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._pool.aclose()

    @asynccontextmanager
    async def _in_time(self, address: str) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._seconds):
                yield
        except TimeoutError:
            reason = f"no complete response within {self._seconds:g} s"
            raise FetchFailed(address, reason, passing=True) from None

    @asynccontextmanager
    async def _request(
        self, method: str, url: Url, label: str, headers: Mapping[str, str], body: bytes | None
    ) -> AsyncIterator[httpcore.Response]:
        """Send a request, and convert any error to ours, with `label` as the address."""
        address = httpcore.URL(
            scheme=url.scheme.encode(), host=url.host.encode(), port=url.port, target=url.target.encode()
        )
        sent = [(name.encode("ascii"), value.strip().encode("latin-1")) for name, value in headers.items()]
        waits = {"timeout": {"connect": self._seconds, "pool": self._seconds}}
        try:
            async with self._pool.stream(
                method, address, headers=sent, content=body, extensions=waits
            ) as response:
                yield response
        except ForbiddenAddress:
            raise ForbiddenAddress(label) from None
        except TRANSPORT_ERRORS as error:
            raise _failure(label, error) from error
        except Unreadable as error:
            raise FetchFailed(label, str(error)) from None


def _failure(address: str, error: Exception) -> FetchFailed:
    if isinstance(error.__context__, ssl.SSLCertVerificationError):
        return FetchFailed(address, "the certificate is not valid for the host")
    if isinstance(error, socket.gaierror):
        return FetchFailed(address, "the host name could not be resolved", passing=True)
    if isinstance(error, httpcore.ConnectError | httpcore.ConnectTimeout):
        return FetchFailed(address, "no connection", passing=True)
    return FetchFailed(address, "the connection was closed before the response was complete", passing=True)


def hold_to(limit: int, size: int) -> None:
    if size > limit:
        raise TooLarge("answer", size=size, limit=limit)
