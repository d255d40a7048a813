"""Sending what alerts tell to addresses outside: the `Poster` port.

The same boundary holds as for pages that are fetched, at every sending: a name that leads inside by now is
not sent to. Redirects are not followed, as whoever answers could send the content anywhere.
"""

import asyncio
import hashlib
import hmac
import socket
import ssl
from typing import Final

import httpcore

from conspectus.errors import FetchFailed, ForbiddenAddress, InvalidInput
from conspectus.sources.web.address_policy import AddressPolicy, Connections, Resolve, resolve_name
from conspectus.sources.web.fetcher import TRANSPORT_ERRORS, trusted
from conspectus.text.urls import Url, parse_url

ID_HEADER: Final = "Conspectus-Id"
SIGNATURE_HEADER: Final = "Conspectus-Signature"
CONNECTIONS: Final = 1_000
"""So many receivers may be slow at once before others have to wait for them."""
PASSING: Final = frozenset({408, 425, 429})
"""Refusals that later sending may get round, as it may a server's own faults."""


class WebhookPoster:
    """The `Poster` port. With a `key`, each body is signed: `sha256=` and its HMAC in hexadecimal."""

    def __init__(
        self,
        boundary: AddressPolicy,
        *,
        key: str = "",
        seconds: float = 10.0,
        resolve: Resolve = resolve_name,
        certificates: ssl.SSLContext | None = None,
    ) -> None:
        self._boundary = boundary
        self._key = key.encode()
        self._seconds = seconds
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=certificates or trusted(),
            max_connections=CONNECTIONS,
            max_keepalive_connections=0,
            network_backend=Connections(boundary, resolve=resolve),
        )

    def check(self, url: str) -> None:
        """Raise InvalidInput for what is no address to send to, ForbiddenAddress for one that may not be."""
        self._checked(url)

    async def post(self, url: str, body: bytes, *, id: str) -> None:
        """Send JSON once. Raises FetchFailed for any answer but a success, and ForbiddenAddress."""
        target = self._checked(url)
        try:
            async with asyncio.timeout(self._seconds):
                status = await self._status(target, body, id)
        except TimeoutError:
            reason = f"no answer within {self._seconds:g} s"
            raise FetchFailed(_shown(target), reason, passing=True) from None
        except ForbiddenAddress:
            raise ForbiddenAddress(_shown(target)) from None
        except TRANSPORT_ERRORS as fault:
            raise _failure(target, fault) from fault
        if not 200 <= status < 300:
            passing = status in PASSING or status >= 500
            raise FetchFailed(_shown(target), f"answered HTTP {status}", status=status, passing=passing)

    async def close(self) -> None:
        """Close all connections."""
        await self._pool.aclose()

    def _checked(self, text: str) -> Url:
        url = parse_url(text)
        if url.credentials:
            raise InvalidInput("webhook", "must not hold a user name or password")
        if not self._boundary.may_ask(url.host):
            raise ForbiddenAddress(_shown(url))
        return url

    async def _status(self, url: Url, body: bytes, id: str) -> int:
        address = httpcore.URL(
            scheme=url.scheme.encode(), host=url.host.encode(), port=url.port, target=url.target.encode()
        )
        waits = {"connect": self._seconds, "pool": self._seconds}
        async with self._pool.stream(
            "POST",
            address,
            headers=self._headers(url, body, id),
            content=body,
            extensions={"timeout": waits},
        ) as response:
            return response.status

    def _headers(self, url: Url, body: bytes, id: str) -> list[tuple[bytes, bytes]]:
        headers = {
            "Host": url.authority,
            "User-Agent": "conspectus",
            "Accept": "*/*",
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            ID_HEADER: id,
        }
        if self._key:
            headers[SIGNATURE_HEADER] = f"sha256={hmac.new(self._key, body, hashlib.sha256).hexdigest()}"
        return [(name.encode("ascii"), value.encode("ascii")) for name, value in headers.items()]


def _shown(url: Url) -> str:
    """The address for messages: without path and query, which may be all that keeps others from it."""
    return f"{url.scheme}://{url.authority}"


def _failure(url: Url, fault: Exception) -> FetchFailed:
    if isinstance(fault.__context__, ssl.SSLCertVerificationError):
        return FetchFailed(_shown(url), "its certificate is not valid for it")
    if isinstance(fault, socket.gaierror):
        return FetchFailed(_shown(url), "its name could not be looked up", passing=True)
    if isinstance(fault, httpcore.ConnectError | httpcore.ConnectTimeout):
        return FetchFailed(_shown(url), "no connection", passing=True)
    return FetchFailed(_shown(url), "the connection broke before there was an answer", passing=True)
