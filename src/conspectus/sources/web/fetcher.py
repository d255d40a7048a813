"""HTTP requests to the web within limits: the `Fetcher` and `Poster` ports.

Built on httpcore, the transport of httpx, because the checks belong to connections and responses. Proxies of
the environment and cookies are not used.
"""

import asyncio
import hashlib
import hmac
import re
import socket
import ssl
import zlib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import field
from functools import cache
from typing import Final

import httpcore
import httpx

from conspectus.deferred import dataclass
from conspectus.errors import FetchFailed, ForbiddenAddress, InvalidInput, TooLarge
from conspectus.ports.web import Fetched
from conspectus.sources.web.address_policy import AddressPolicy, Connections, Resolve, resolve_name
from conspectus.text.urls import Url, parse_url

GZIP, ZLIB, RAW_DEFLATE = 31, 15, -15
WINDOWS = {"gzip": GZIP, "x-gzip": GZIP, "deflate": ZLIB}
GZIP_START = 0x1F
LAYERS = 3
MEMBERS = 10_000


class Unreadable(Exception):
    """An unknown content coding, or damaged data."""


class Unpacker:
    """Decodes the content codings of one response. Raises Unreadable for unknown codings."""

    def __init__(self, codings: Sequence[str], limit: int) -> None:
        layered = [coding for coding in codings if coding not in {"", "identity"}]
        if len(layered) > LAYERS or not WINDOWS.keys() >= set(layered):
            raise Unreadable(f"content coding {', '.join(layered)[:40]!r} is not understood")
        self._layers = [_Layer(coding, limit) for coding in reversed(layered)]

    def feed(self, data: bytes) -> bytes:
        """Decode these bytes. Raises TooLarge or Unreadable."""
        for layer in self._layers:
            data = layer.feed(data)
        return data

    @property
    def complete(self) -> bool:
        """Return whether the content is complete."""
        return all(layer.complete for layer in self._layers)


class _Layer:
    """One coding. Several gzip members are one body; anything else after the end is ignored as padding."""

    def __init__(self, coding: str, limit: int) -> None:
        self._window = WINDOWS[coding]
        self._limit = limit
        self._stream = zlib.decompressobj(self._window)
        self._begun = False
        self._padding = False
        self._members = 1
        self._size = 0

    @property
    def complete(self) -> bool:
        return self._stream.eof or not self._begun

    def feed(self, data: bytes) -> bytes:
        pieces = []
        while data and not self._padding:
            if self._stream.eof:
                self._padding = self._window != GZIP or data[0] != GZIP_START
                self._members += 1
                if self._members > MEMBERS:
                    raise Unreadable("its compressed content is in too many parts")
                if not self._padding:
                    self._stream = zlib.decompressobj(self._window)
                continue
            pieces.append(self._inflate(data))
            data = self._stream.unused_data
        return b"".join(pieces)

    def _inflate(self, data: bytes) -> bytes:
        """Decompress at most one byte more than the limit."""
        try:
            plain = self._stream.decompress(data, self._limit - self._size + 1)
        except zlib.error:
            if self._begun or self._window != ZLIB:
                raise Unreadable("its compressed content is damaged") from None
            self._window = RAW_DEFLATE
            self._stream = zlib.decompressobj(RAW_DEFLATE)
            return self._inflate(data)
        self._begun = True
        self._size += len(plain)
        if self._size > self._limit:
            raise TooLarge("unpacked answer", size=self._size, limit=self._limit)
        return plain


METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})
WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
REDIRECTS = frozenset({301, 302, 303, 307, 308})
OURS = frozenset({
    "accept-encoding", "connection", "content-length", "expect", "host", "keep-alive", "proxy-authorization",
    "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
})  # fmt: skip
CONNECTIONS = 100
TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
CHARSET = re.compile(r"""charset\s*=\s*["']?([\w.:+-]+)""", re.IGNORECASE | re.ASCII)
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
class _Request:
    """One request. Headers of the caller are sent to its origin only."""

    method: str
    url: Url
    headers: Mapping[str, str] = field(default_factory=dict)

    def redirected(self, status: int, location: str) -> "_Request":
        """Return the redirected request. Another origin gets none of the headers, which may be secrets."""
        url = self.url.joined(location)
        changes = (status == 303 and self.method != "HEAD") or (status < 303 and self.method == "POST")
        headers = self.headers if url.origin == self.url.origin else {}
        return _Request("GET" if changes else self.method, url, headers)


@cache
def trusted() -> ssl.SSLContext:
    """Return the certificate authorities of this machine, loaded once for all fetchers."""
    return httpx.create_ssl_context()


class _HttpClient:
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
            ssl_context=certificates or trusted(),
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


class WebFetcher(_HttpClient):
    """The `Fetcher` port. `resolve` looks up names, `backend` connects to checked addresses."""

    def __init__(
        self,
        limits: FetchLimits,
        *,
        resolve: Resolve = resolve_name,
        backend: httpcore.AsyncNetworkBackend | None = None,
        certificates: ssl.SSLContext | None = None,
    ) -> None:
        self._limits = limits
        boundary = AddressPolicy.from_entries(limits.allow)
        connections = Connections(boundary, resolve=resolve, below=backend)
        super().__init__(
            connections, limits.seconds, certificates, maximum=CONNECTIONS, max_idle=CONNECTIONS // 10
        )

    async def fetch(
        self, url: str, *, method: str = "GET", headers: Mapping[str, str] | None = None
    ) -> Fetched:
        """Send one request and follow its redirects. Any status is a response.

        Raises InvalidInput for an invalid URL, method or header, ForbiddenAddress for an address that is not
        allowed, TooLarge for a response over a limit, and FetchFailed without a response.
        """
        if method.upper() not in METHODS:
            raise InvalidInput("method", f"must be one of {', '.join(sorted(METHODS))}")
        request = _Request(method.upper(), _checked_url(url), _checked_headers(headers or {}))
        async with self._in_time(request.url.redacted):
            return await self._follow(request)

    async def _follow(self, request: _Request) -> Fetched:
        for _ in range(self._limits.max_redirects + 1):
            answer = await self._answer(request)
            location = answer.headers.get("location")
            if answer.status not in REDIRECTS or not location:
                return answer
            request = _next(request, answer.status, location)
        reason = f"more than {self._limits.max_redirects} redirects"
        raise FetchFailed(request.url.redacted, reason)

    async def _answer(self, request: _Request) -> Fetched:
        url, body = request.url, b"" if request.method in WITH_BODY else None
        async with self._request(request.method, url, url.redacted, _sent(request), body) as response:
            headers: dict[str, str] = {}
            for raw_name, raw_value in response.headers:
                name, value = raw_name.decode("latin-1").lower(), _header_text(raw_value)
                if not name.startswith("set-cookie"):
                    headers[name] = f"{headers[name]}, {value}" if name in headers else value
            moved = response.status in REDIRECTS and "location" in headers
            empty = moved or request.method == "HEAD"
            content = b"" if empty else await self._body(response, headers)
        media_type = headers.get("content-type", "")
        charset = CHARSET.search(media_type)
        return Fetched(
            url=str(url),
            status=response.status,
            content_type=media_type.split(";")[0].split(",")[0].strip().lower(),
            charset=charset[1].lower() if charset else None,
            body=content,
            headers=headers,
        )

    async def _body(self, response: httpcore.Response, headers: Mapping[str, str]) -> bytes:
        limit = self._limits.max_bytes
        announced = headers.get("content-length", "")
        _hold_to(limit, int(announced[:20]) if announced.isdecimal() else 0)
        codings = headers.get("content-encoding", "").lower().split(",")
        unpacker = Unpacker([coding.strip() for coding in codings], limit)
        pieces, size = [], 0
        async for piece in response.aiter_stream():
            size += len(piece)
            _hold_to(limit, size)
            pieces.append(unpacker.feed(piece))
        if not unpacker.complete:
            raise httpcore.RemoteProtocolError("the compressed content ends too early")
        return b"".join(pieces)


def _hold_to(limit: int, size: int) -> None:
    if size > limit:
        raise TooLarge("answer", size=size, limit=limit)


def _checked_url(text: str) -> Url:
    url = parse_url(text)
    if url.credentials:
        raise InvalidInput("url", "must not contain a user name or password; give an Authorization header")
    return url


def _checked_headers(headers: Mapping[str, str]) -> Mapping[str, str]:
    """Validate headers. Error messages never contain their values."""
    for name, value in headers.items():
        if not TOKEN.fullmatch(name):
            raise InvalidInput("headers", f"{name[:80]!r} cannot be the name of a header")
        if name.lower() in OURS:
            raise InvalidInput("headers", f"{name!r} cannot be set")
        if not VALUE.fullmatch(value):
            raise InvalidInput(
                "headers", f"the value of {name!r} has characters that are not allowed in headers"
            )
    return dict(headers)


def _next(request: _Request, status: int, location: str) -> _Request:
    try:
        following = request.redirected(status, location)
    except InvalidInput:
        following = None
    if following is None or following.url.credentials:
        raise FetchFailed(
            request.url.redacted, "redirects to an address that cannot be requested", status=status
        )
    return following


def _sent(request: _Request) -> Mapping[str, str]:
    usual = {"user-agent": "conspectus", "accept": "*/*"}
    header_names = {name.lower() for name in request.headers}
    left = {name: value for name, value in usual.items() if name not in header_names}
    return {"Host": request.url.authority, "Accept-Encoding": "gzip, deflate", **left, **request.headers}


def _header_text(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")


ID_HEADER: Final = "Conspectus-Id"
SIGNATURE_HEADER: Final = "Conspectus-Signature"
POST_CONNECTIONS: Final = 1_000
"""Maximum number of concurrent deliveries."""
PASSING: Final = frozenset({408, 425, 429})
"""Statuses that are retried, besides those of the server's own failures."""


class WebhookPoster(_HttpClient):
    """The `Poster` port. With a `key`, bodies are signed with HMAC-SHA256 as `sha256=<hex>`.

    The address policy is checked at each delivery, because a name may resolve to an internal address by then.
    Redirects are not followed, because they could lead the content anywhere.
    """

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
        connections = Connections(boundary, resolve=resolve)
        super().__init__(connections, seconds, certificates, maximum=POST_CONNECTIONS, max_idle=0)

    def check(self, url: str) -> None:
        """Raises InvalidInput for an invalid address, and ForbiddenAddress for one that is not allowed."""
        self._checked(url)

    async def post(self, url: str, body: bytes, *, id: str) -> None:
        """Send JSON once. Raises FetchFailed unless the status is 2xx, and ForbiddenAddress."""
        target = self._checked(url)
        address = _redacted(target)
        headers = self._headers(target, body, id)
        async with self._in_time(address), self._request("POST", target, address, headers, body) as response:
            status = response.status
        if not 200 <= status < 300:
            passing = status in PASSING or status >= 500
            raise FetchFailed(address, f"answered HTTP {status}", status=status, passing=passing)

    def _checked(self, text: str) -> Url:
        url = parse_url(text)
        if url.credentials:
            raise InvalidInput("webhook", "must not contain a user name or password")
        if not self._boundary.may_ask(url.host):
            raise ForbiddenAddress(_redacted(url))
        return url

    def _headers(self, url: Url, body: bytes, id: str) -> Mapping[str, str]:
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
        return headers


def _redacted(url: Url) -> str:
    """Return the address for messages, without path and query, which may be secret."""
    return f"{url.scheme}://{url.authority}"
